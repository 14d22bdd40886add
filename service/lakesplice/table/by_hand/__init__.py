"""By hand: tables that programs write, and tables of other writers that become ours.

Offers `HandFedTable`, whose methods call `upserts`, `edits`, constraints and upkeep by way of
`Writer`, and `adoption`. It must not know topics, batches or drivers.
"""
