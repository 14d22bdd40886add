"""Shape: which columns a table has, and what is done to their values on the way in.

Offers chosen columns, masks, computed columns, columns of metadata and partition columns. It must
not know schema changes (`schema` decides those) nor where records come from.
"""
