"""Jobs: the two stages of a batch, and the rewrites of compaction, as Spark jobs.

Offers the plan of a batch, its execution, and the answers of its tasks as values. It must not ask
the broker.
"""
