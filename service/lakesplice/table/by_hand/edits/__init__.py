"""Edits: changes of a table fed by hand, whose rows are chosen by a condition or by rows of a
source.

Offers `EditedTable`. It must not know topics.
"""
