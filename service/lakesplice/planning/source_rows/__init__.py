"""Rows of a source database: the SQL that reads their exact values, and how its results become
values.

Offers, per column, an expression and the conversion of its text (`columns`, `values`), a chunk of
rows as one text (`row_text`), and ranges of a key in the server's own order (`key_ranges`). It must
not connect to anything: `storage/source/rows.py` does.
"""
