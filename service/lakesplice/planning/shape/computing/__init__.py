"""Computed columns: expressions over a row's columns, pure and total.

`expression.py` parses them and writes them as text, `evaluation.py` has their types and values,
`functions.py` the list of functions, `casts.py` and `moments.py` those that are more than a kernel
of Arrow.

No expression fails because of a value: an impossible result is null.
"""
