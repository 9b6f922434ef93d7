"""Same-template sets with full truth: the structure of stored real pages, other articles' texts,
names and dates in it.

No public data hold twelve pages of one template with the truth of all four fields. Each stored page
with a whole gold row gives a structure here: its title, paragraphs, names and dates are found in
the DOM and replaced by those of made-up stories, and what stands around them (related lists,
teasers, captions) changes from page to page as on a real site. The pages stay outside the
repository; without them there are no structures (structure.py says why one was left out).
"""
