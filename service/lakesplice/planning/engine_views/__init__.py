"""SQL that shows a table in other engines as its own reader shows it: without deleted rows and
system columns.

`engines.py` has the differences between engines, `view_columns.py` the columns of a view and their
names, `view_sql.py` the statements and their quotes. Nothing is run here.
"""
