"""The full-text index of the local store: a folder of the engine tantivy beside the SQLite file.

SQLite is the store of record. The index holds words and what is filtered and counted by, never an
article: it follows the file by the rising change number of its articles (indexer), answers searches
with the numbers of articles (search), and can be deleted and made anew at any time (folder).
"""
