"""The protocol of a table: the order in which it is written, and what each commit relies on.

Rooms, from the bottom up: `protocol` (the log, the manifest, commits), `files` (the files of a
table), then `reading`, `upkeep` and `driver` side by side, `ingest` (the changes of a batch) and
`by_hand` (tables that programs write). The import contract `table-rooms` enforces this order.
Nothing here opens a file, asks for the time or starts a thread: `protocol/ports.py` names what
callers provide.
"""
