"""Rows: their keys, the changes of one row, and the row that results from them.

Offers key hashes, folding several changes of a row into one, laying waiting changes over a file's
rows, and finding a key's row in the index. It must not know why a change came: no source, no
policy.
"""
