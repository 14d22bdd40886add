"""Blocks: the row images of a batch while they are built.

Offers the builder, positions of events, configured keys, type mappings, and checks of units. It
must not know which format it builds for.
"""
