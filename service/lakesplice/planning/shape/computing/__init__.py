"""Computed columns: expressions over a row's columns, pure and closed.

`expression.py` reads and spells them, `evaluation.py` has their types and values, `functions.py`
which functions there are, `casts.py` and `moments.py` those that are more than a kernel of Arrow.

No expression fails on a value: an impossible result is null.
"""
