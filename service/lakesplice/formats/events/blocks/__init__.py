"""Blocks: the row images of a batch while they are put together.

Offers the builder, positions of events, keys by configuration, type mappings, and checks of units.
It must not know which format it builds for.
"""
