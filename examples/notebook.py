# %% [markdown] # newscrawler in a notebook Each `# %%` is a cell: open this file in VS Code,
# PyCharm or Jupyter (jupytext), or run it from the project's folder: `.venv/bin/python -m
# examples.notebook`. Elsewhere, set PYTHONPATH to that folder. What is crawled goes to `data/`; a
# second run goes on where this one stopped.

# %%
from itertools import islice

from newscrawler import Crawler, CrawlFailed, extract, open_store
from newscrawler.store.base import StoreUnavailable

# %% [markdown] ## Crawl As polite as `scrapy crawl news`: robots.txt, one fetch at a time and 2 s
# apart for each site. Leaving the loop ends it.

# %%
crawler = Crawler(sites=["vnexpress.net", "dantri.com.vn"], limit=5)
articles = []
try:
    for article in crawler:
        articles.append(article)
        print(article.published, article.site, article.title)
except CrawlFailed as failed:  # no network, for example
    print(failed)

# %% [markdown]
# ## Search what is stored
# A run that crawled nothing reads what an earlier one stored.

# %%
if not articles:
    try:
        with open_store() as store:
            articles = list(islice(store, 1))
    except StoreUnavailable:
        pass
if not articles:
    raise SystemExit(f"No article is stored yet. {crawler.reason}".strip())
with open_store() as store:
    print(len(store), "articles are stored")
    for hit in store.search(articles[0].title, limit=3):
        print(hit.article.title, hit.article.url)

# %% [markdown]
# ## Read one page
# An address is fetched through the same gate; HTML that you have is only read.

# %%
article = extract(articles[0].url)
print(article.title, article.authors, article.published)
print(article.content[:200])
