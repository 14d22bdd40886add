"""Where bytes are outside of this process: a lake's files, and what source systems answer.

Offers adapters of the interfaces in `table/protocol/ports.py`: stores on disks and in buckets,
schema registries, Kafka Connect, a source database. It must not know Spark, metrics or settings.
"""
