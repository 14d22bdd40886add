"""Upserts: rows to write and keys to delete become the next version of a table fed by hand.

Offers `Upserter`, its request and result, and `write_new_rows`. It must not know conditions, merges
of a source's rows, or the table's object.
"""
