"""Reading: a table's rows at a version, and what each version changed.

Offers `Table`, scans and the change feed. It must not write.
"""
