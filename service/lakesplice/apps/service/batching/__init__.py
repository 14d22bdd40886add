"""Batching: one batch, from the offsets that Spark names to the commit of each table with records
in it.

Offers `BatchRunner`, and what happens to tables that failed or were dropped. It must not choose
topics: `sources` does.
"""
