"""Filtering: conditions on rows, and which row groups and partitions can't match them.

Offers conditions written in SQL or as Arrow expressions, and pruning by them. It must not read
anything: the caller provides statistics and partition values.
"""
