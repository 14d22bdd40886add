"""Verification: whether tables of a lake hold what their source's database holds.

`verification.verify_table` compares one table: sums of row checksums of both sides by bucket
(`source_sums.py`, `lake_rows.py`), then of the buckets that differ the keys, and of these the rows
(`differences.py`). What can be compared at all is in `compared_table.py`, how far a lake has to be
in `reached.py`, what a command shows in `report.py`. It changes nothing on either side.
"""
