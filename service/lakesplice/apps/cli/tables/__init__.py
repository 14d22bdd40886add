"""Commands about tables: adopt, compact, mirror, purge, reset, restore, and their dead letters; in
`showing` those that change nothing.

Offers the functions that `cli/app.py` registers by name. A command must not import another one.
"""
