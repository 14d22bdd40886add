"""Adoption: a Delta table or Parquet files of other writers become a table fed by hand.

Offers `adopt_table`, and `plan_adoption`, which says beforehand what it would do. It must not know
upserts or edits: it reads each file once, and changes none.
"""
