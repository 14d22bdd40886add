"""Clustering: base files are laid out again, with their rows ordered by some columns.

`rearranging.py` writes the files; `moved_rows.py` has where each row went, and carries what waits
for it; `clustering.py` plans commit after commit until no file is new.
"""
