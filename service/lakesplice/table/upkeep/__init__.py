"""Upkeep: compaction, merges, purges, vacuum and care of the log.

Offers each as one step that ends in a commit or leaves the table as it was. It must not know where
changes come from.
"""
