"""The order of one partition's records: where it is ambiguous, and at which record it ends.

Offers record indexes and positions in this order, and the records at which a table must be parked.
It must not know which changes, dead letters or reports the records become.
"""
