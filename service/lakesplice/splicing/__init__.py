"""Rewrites Parquet files and encodes only what changed; the caller passes the sources of the bytes.

Offers splices, merges and changes of whole columns. It must not open a file by name, nor know
Spark, clocks or random numbers.
"""
