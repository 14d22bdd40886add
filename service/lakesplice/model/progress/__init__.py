"""The progress of a table with its source: partitions, epochs, chunks, columns and erased keys, as
values.

Offers frozen classes for the manifest and a shadow's plan. It must not know the decisions that use
them, nor the manifest itself.
"""
