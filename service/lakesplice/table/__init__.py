"""The protocol: the order of every write, and what each commit relies on.

Rooms, from the bottom up: `protocol` (the log, the manifest and how a commit is made), `files`
(what a table consists of on the store), then `reading`, `upkeep` and `driver` side by side,
`ingest` (a batch's changes) and `by_hand` (tables that programs write). The import contract
`table-rooms` holds this order. Nothing here opens a file, takes the time or starts a thread:
`protocol/ports.py` says what is given from outside.
"""
