"""Versions: the rows of history tables, one for each change of a row of the source.

Offers the columns that make a change a row of its own (`version_columns.py`), and the intervals in
which rows were as they are (`intervals.py`). It must not know where records come from.
"""
