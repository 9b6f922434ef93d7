"""Search by meaning beside the search by words of the local store.

A model (embedder) makes a vector of each article's title and beginning; nano has the one that runs
here, openai_endpoint those of a server. A file beside the articles keeps the vectors (vectors), a
task in the background makes those that are missing (follower), and a matrix in memory finds the
nearest (matrix). When they are asked, and how their order is joined with that of the words, is in
fusion. Everything here can be deleted, and is made anew.
"""
