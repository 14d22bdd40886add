"""Erasure: removes the values of some rows from every byte of a table.

`erasure.py` has the order of steps; `found_parts.py` finds files with data of the rows,
`rewriting.py` rewrites them without it, and `older_versions.py` ends the versions that had them.
"""
