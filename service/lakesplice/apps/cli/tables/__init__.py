"""Commands about tables: list, read, adopt, compact, purge, reset, restore, and their dead letters.

Offers the functions that `cli/app.py` registers by name. A command must not import another one.
"""
