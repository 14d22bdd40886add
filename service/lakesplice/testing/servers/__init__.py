"""Real servers of a source on this machine: a database with its binlog, and its connectors."""
