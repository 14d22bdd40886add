"""Erasing for people: the keys that they name, the command, and the search that proves it.

`byte_search.py` and `parquet_bytes.py` know nothing of Lakesplice, so that their answer doesn't
rest on the code that it judges.
"""
