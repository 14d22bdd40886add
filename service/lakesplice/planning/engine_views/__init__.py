"""SQL that shows a table to other engines as its own reader does: without deleted rows and system
columns.

`engines.py` has what differs between engines, `view_columns.py` which columns a view has and under
which names, `spelling.py` quotes, and `view_sql.py` the statements. Nothing is run here.
"""
