"""Thrift's compact protocol, in which Parquet writes its metadata: lossless, and safe on any bytes.

Offers structures, typed access to their fields, and runs of varints. It must not know Parquet.
"""
