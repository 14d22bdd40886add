"""Sources: where the topics that feed a table stand, and how their changes are ordered.

Offers epochs, GTIDs, positions, snapshots, shards, dropped tables and an operator's directions. It
must not look into rows beyond their position.
"""
