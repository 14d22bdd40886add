"""Cells: from a column as JSON gives it to its exact type, cell by cell where one is bad.

Offers conversions of numbers, decimals, moments, bytes, ENUM, SET and geometry. It must not know
which format wrote them.
"""
