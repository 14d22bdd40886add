"""Erasure: the values of some rows are removed from every byte of a table.

`erasure.py` says in which order; `found_parts.py` finds what has something of the rows,
`rewriting.py` writes it again without them, `older_versions.py` ends the versions that had them.
"""
