"""A source database: reads its server, its tables, its rows and places in its binlog by SQL.

Offers `SourceConnection`, and one function for each query. It must not know stores, buckets or
schema registries, nor interpret the answers: `planning/source_rows` does.
"""
