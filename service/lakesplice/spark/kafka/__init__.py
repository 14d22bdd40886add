"""Kafka, through the client that Spark's source itself uses, so that one set of options is enough.

Offers the streaming query, topics and their offsets, single records, and the topic of dead letters.
It must not know what a batch does with records.
"""
