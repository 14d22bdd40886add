"""Pure decisions: values in, values out; no time, no chance, no files.

Rooms, from the bottom up: `rows` (keys, changes and what becomes of a row) and `source_rows` (which
SQL asks a source database for rows, and what its answers are), `shape` (which columns
a table has and what is computed or masked in them), `filtering` (conditions and what they let a
reader skip), `schema` (the source's schema changes and what a table makes of them), `sources`
(positions, epochs, snapshots and drops of the topics that feed a table); on these stand `intake`
(which changes a partition's records are), `upkeep` (compaction, merges, purges), `by_hand` (tables
that programs write), `diagnosis` (what is right or wrong of what Lakesplice stands on) and
`engine_views` (SQL that shows tables in other engines). The import contract `planning-rooms` holds
this order.
"""
