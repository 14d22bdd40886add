"""The Parquet format: the structures of a file, read, checked and written back; no values."""
