"""Rewriting Parquet files by touching only what changed; bytes come from sources that are given.

Offers splices, merges and changes of whole columns. It must not open a file by name, nor know
Spark, clocks or chance.
"""
