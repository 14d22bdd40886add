"""Upkeep: compaction, merges, purges, vacuum and maintenance of the log.

Each is one step that ends in a commit, or leaves the table as it was. It must not know where
changes come from.
"""
