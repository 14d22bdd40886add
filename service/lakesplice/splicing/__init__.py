"""Rewriting Parquet files by touching only what changed; bytes come from sources that are given."""
