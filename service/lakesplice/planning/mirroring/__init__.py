"""What an Iceberg mirror of a table must have: its columns, and its files with their bounds.

`columns.py` decides how the mirror's schema follows the table's, `files.py` which files enter and
leave it. Values are in the form that Iceberg stores: days and microseconds are numbers.
"""
