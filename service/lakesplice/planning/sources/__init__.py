"""Sources: how far a table has read each of its topics, and how their changes are ordered.

Offers epochs, GTIDs, positions, snapshots, shards, dropped tables and an operator's directions. It
must not look into rows beyond their position.
"""
