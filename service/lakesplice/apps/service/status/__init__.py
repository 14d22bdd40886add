"""Status: what a running service says of its topics and tables, to people and to other programs.

Offers the status document, readiness, and the summary of `run --once`. It must not change a table.
"""
