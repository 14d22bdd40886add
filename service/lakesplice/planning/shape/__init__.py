"""Shape: which columns a table has, and how their values are computed or masked at intake.

Offers chosen columns, masks, computed columns, columns of metadata and partition columns. It must
not know schema changes (`schema` decides those) nor where records come from.
"""
