"""Explaining: finds out why a row is as it is, from the row's key.

Offers the story of a key: what the retained versions of a table did to its row, and what happened
to each record of the key in the topics. It uses the decisions that ingest and readers use, makes
none of its own, and must not write.
"""
