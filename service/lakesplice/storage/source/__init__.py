"""A source database: its server, its tables, its rows, and places in its binlog, asked by SQL.

Offers `SourceConnection`, and functions that ask one thing each. It must not know stores, buckets
or schema registries, nor decide what an answer means: that is `planning/source_rows`.
"""
