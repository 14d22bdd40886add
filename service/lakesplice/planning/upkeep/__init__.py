"""Upkeep: which files are due for compaction, merging, purging and deletion.

Offers plans only. It must not read or write: `lakesplice.table.upkeep` carries out the plans.
"""
