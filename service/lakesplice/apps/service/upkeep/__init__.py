"""Upkeep: threads that compact, merge, purge and vacuum tables while batches continue.

Offers the compactor and the tasks that it runs. It must not touch a table's sources.
"""
