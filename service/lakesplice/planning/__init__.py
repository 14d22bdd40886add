"""Pure decisions: values in, values out; no time, no random numbers, no files.

Rooms, each of which uses only those above it in this list:

    rows           keys, changes, and the row that results
    source_rows    SQL that reads rows of a source database, and how its answers are decoded
    shape          a table's columns, computed and masked values
    filtering      conditions, and what a reader can skip by them
    schema         the source's schema changes, and what a table makes of them
    sources        positions, epochs, snapshots and drops of the topics that feed a table

and on these, independent of each other:

    intake         records become changes
    upkeep         compaction, merges, purges
    by_hand        tables that programs write
    diagnosis      judges Kafka, the database, the store and the machine
    mirroring      what a table's Iceberg mirror must have
    engine_views   SQL that shows tables in other engines

The import contract `planning-rooms` enforces this.
"""
