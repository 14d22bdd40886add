"""Shape: which columns a table has, and how their values are computed or masked at intake.

Offers the choice of columns, masks, computed columns, metadata columns and partition columns. It
must not know schema changes (`schema` decides about those) nor where records come from.
"""
