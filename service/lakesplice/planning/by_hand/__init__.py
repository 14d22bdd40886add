"""By hand: what rows that a program gives, and files that others wrote, mean to a table.

Offers checks and conversions for `HandFedTable` and adoption. It must not know topics.
"""
