"""Ingest: what a batch brings to one table becomes its next version, or parks it.

Offers the table as its driver holds it, the writing of changes, fences, and replay of dead letters.
It must not decide what records mean: `lakesplice.planning.intake` does.
"""
