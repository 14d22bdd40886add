"""By hand: tables that programs write, and tables of other writers that become ours.

Offers `HandFedTable`, upserts and adoption. It must not know topics, batches or drivers.
"""
