"""Spark's format "lakesplice": tables and their changes as a data source of Spark SQL.

Offers the data source, by batch and as a stream. It must not write to a table, nor know the
service.
"""
