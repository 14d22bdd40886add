"""The library: what Python programs import of Lakesplice, re-exported by the package itself.

Offers `Table`, the splice of one file, and work on whole Parquet files. It must not know the
service, Spark or the command line.
"""
