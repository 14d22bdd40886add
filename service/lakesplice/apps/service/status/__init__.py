"""Status: what a running service reports about its topics and tables, to people and to programs.

Offers the status document, readiness, and the summary of `run --once`. It must not change a table.
"""
