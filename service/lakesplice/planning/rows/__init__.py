"""Rows: their keys, the changes of one row, and the row that results from them.

Offers key hashes, the fold of several changes of a row into one, the overlay of waiting changes on
a file's rows, and the look-up of a key's row in the index. It must not know why a change came: no
source, no policy.
"""
