"""The edge to Spark: moves data and decides nothing.

Offers sessions, their JVM and their jars. `jobs` runs the work of batches and compactions as Spark
jobs; `kafka` reads topics and asks the broker through Spark's own client. It must not open a store,
read a setting or count metrics.
"""
