"""A fleet of tables beside Delta's MERGE, and a fleet with three tables in trouble.

Run: python -m benchmarks.fleet_merge; `__main__.py` says what is measured.
"""
