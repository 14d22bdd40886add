"""The Parquet format: the structures of a file, read, checked and written back; no values.

Offers footers, chunks, page headers and indexes with typed fields, and a source file with all of
them. It must not encode or decode a value.
"""
