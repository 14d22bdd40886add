"""The order of one partition's records: where it is ambiguous, and which records end it.

Offers record indexes and positions in this order, and the records at which a table must park. It
must not know which changes, dead letters or reports come of the records.
"""
