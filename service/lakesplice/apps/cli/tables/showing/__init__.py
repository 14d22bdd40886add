"""Commands that show tables and change nothing: list, watch, read, explain, and views for engines.

Offers the functions that `cli/app.py` registers by name. A command must not import another one,
only what prints an overview or a story of a key.
"""
