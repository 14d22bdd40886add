"""The Parquet format: reads, checks and writes a file's structures, but no values.

Offers footers, chunks, page headers and indexes with typed fields, and a source file with all of
them. It must not encode or decode a value.
"""
