"""Ingest: a batch's changes of one table become its next version, or park the table.

Offers the table as its driver sees it, the writing of changes, fences, and the replay of dead
letters. What a record means is decided by `lakesplice.planning.intake`, not here.
"""
