"""Files: what a table consists of on its store, each written once and checked when read.

Offers base files, runs of the row index, pending deltas, dead letters and the page splice. It must
not commit: the caller that writes files here hands their names to a commit.
"""
