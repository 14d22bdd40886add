"""Filtering: what of a table a reader needs, by its conditions and its columns.

Offers conditions written in SQL or as Arrow expressions, pruning by them, and which columns of rows
and of waiting changes are needed to show some columns. It must not read
anything: the caller provides statistics and partition values.
"""
