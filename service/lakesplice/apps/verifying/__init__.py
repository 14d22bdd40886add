"""Compares tables of a lake with the database that feeds them.

`verification.verify_table` compares one table. It first compares sums of row checksums by bucket
(`source_sums.py`, `lake_rows.py`), then the keys in the buckets that differ, and then the rows of
these keys (`differences.py`). `compared_table.py` decides what can be compared, `catch_up.py`
whether the lake has read far enough, and `report.py` holds the results. A verification changes
nothing on either side.
"""
