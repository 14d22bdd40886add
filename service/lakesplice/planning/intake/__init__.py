"""Intake: the decoded records of one topic partition become changes, dead letters or a parked
table.

Offers the decisions for one partition of a batch and for replayed dead letters, and what a batch
has to know before. It must not know how records were read or how changes are written.
"""
