"""Filtering: conditions on rows, and which row groups and partitions can't meet one.

Offers conditions written in SQL or as Arrow expressions, and pruning by them. It must not read
anything: who holds statistics or partition values gives them.
"""
