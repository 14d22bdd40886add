"""Computed columns: expressions over a row's columns, pure and closed.

`expression.py` reads and spells them, `typing.py` says what type each has, `functions.py` which
functions there are, `casts.py` and `moments.py` hold those that are more than a kernel of Arrow.

No expression fails on a value: what has no result is null.
"""
