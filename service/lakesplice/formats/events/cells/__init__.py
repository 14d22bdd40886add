"""Cells: convert a column from its JSON values to its exact type, value by value if one is bad.

Offers conversions of numbers, decimals, moments, bytes, ENUM, SET and geometry. It must not know
which format wrote the values.
"""
