"""Commands about tables: list, read, adopt, compact, purge, reset, restore, and their dead letters.

Offers the functions that `cli/app.py` gives names. A command must not know another one.
"""
