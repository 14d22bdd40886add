"""Rows of a source database: which SQL asks for them exactly, and what its answers are here.

Offers, per column, an expression and what its text becomes (`columns`, `values`), a chunk of rows
as one text (`row_text`), and ranges of a key in the server's own order (`key_ranges`). It must not
connect to anything: `storage/source/rows.py` does.
"""
