"""SQL that shows a table in other engines as its own reader shows it: without deleted rows and
system columns.

`engines.py` has the differences between engines, `view_columns.py` the columns of a view and their
names, `spelling.py` the quotes, and `view_sql.py` the statements. Nothing is run here.
"""
