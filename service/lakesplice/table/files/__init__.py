"""Files: what a table consists of on its store. Each is written once, and checked when it is read.

Offers base files, runs of the row index, pending deltas, dead letters and the page splice. It must
not commit: a caller that writes files here passes their names to a commit.
"""
