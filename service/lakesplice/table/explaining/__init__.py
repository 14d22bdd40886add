"""Explaining: why a row is as it is, told of its key.

Offers the story of a key by what a table's retained versions hold, and what became of a topic's
records of it. It decides nothing: it asks what ingest and readers ask, and must not write.
"""
