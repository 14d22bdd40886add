"""By hand: checks rows from a program, and files of other writers, against a table.

Offers checks and conversions for `HandFedTable` and adoption. It must not know topics.
"""
