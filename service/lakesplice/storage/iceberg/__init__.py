"""Iceberg catalogs, through pyiceberg, which is imported only where a table has a mirror.

`catalog.py` opens a catalog; `mirror_table.py` is one table in it; `entries.py` makes the entries
of its files, and `schemas.py` its schema.
"""
