"""Intake: from the decoded records of one topic partition to changes, dead letters or a parking.

Offers the decision for one partition of a batch, for dead letters that are replayed, and what a
batch has to know beforehand. It must not know how records were read or how changes are written.
"""
