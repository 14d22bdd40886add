"""Batching: one batch, from the offsets that Spark names to the commit of each table it touched.

Offers `BatchRunner`, and what becomes of tables that failed or were dropped. It must not choose
topics: `sources` does.
"""
