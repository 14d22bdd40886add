"""The command that erases rows: the keys that it gets, and the search that proves the result.

`byte_search.py` and `parquet_bytes.py` know nothing of Lakesplice, so that the result of the
search doesn't depend on the code that it checks.
"""
