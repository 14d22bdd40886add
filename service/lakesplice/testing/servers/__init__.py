"""Real servers of a source on this machine: a database with its binlog, and its connectors.

Offers each as a process that ends with its block. They must not know what is tested with them.
"""
