"""Edits: rows of a table fed by hand that are chosen by a condition, or by rows of a source.

Offers `EditedTable`. It must not know topics.
"""
