"""Upkeep: threads that compact, merge, purge and vacuum tables while batches go on.

Offers the compactor and the tasks that it runs. It must not touch a table's sources.
"""
