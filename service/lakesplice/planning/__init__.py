"""Pure decisions: values in, values out; no time, no chance, no files.

Rooms, from the bottom up: `rows` (keys, changes and what becomes of a row), `shape` (which columns
a table has and what is computed or masked in them), `filtering` (conditions and what they let a
reader skip), `schema` (the source's schema changes and what a table makes of them), `sources`
(positions, epochs, snapshots and drops of the topics that feed a table); on these stand `intake`
(which changes a partition's records are), `upkeep` (compaction, merges, purges) and `by_hand`
(tables that programs write). The import contract `planning-rooms` holds this order.
"""
