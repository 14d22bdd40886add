"""Edits: changes of a table fed by hand, whose rows are chosen by a condition or by rows of a
source.

Offers what deletes, updates, overwrites and merges request of a version. It must not know topics,
or the table's object.
"""
