"""Iceberg catalogs, through pyiceberg, which is imported only where a table has a mirror.

`catalog.py` opens a catalog, with `rest_catalog.py` for those behind HTTP; `mirror_table.py` is one
table in it; `entries.py` makes the entries of its files, and `schemas.py` its schema.
`catalog_errors.py` says what a catalog's errors mean.
"""
