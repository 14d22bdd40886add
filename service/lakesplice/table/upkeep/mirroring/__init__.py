"""Keeps an Iceberg mirror of a table.

`mirror.py` has the order of steps, `mirror_catalog.py` what it needs of a catalog, and
`mirror_floor.py` says which versions a mirror still reads, so that no vacuum deletes their files.
"""
