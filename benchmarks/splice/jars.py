"""The jars of the peers that only this benchmark runs."""

from __future__ import annotations

from lakesplice.spark.jars import JarSet, Module

ICEBERG = JarSet(
    "iceberg", (Module("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.12.0"),)
)
# Hudi has no release for Spark 4.1: it runs in an environment of its own, with this PySpark.
HUDI = JarSet("hudi", (Module("org.apache.hudi", "hudi-spark3.5-bundle_2.12", "1.2.0"),))
HUDI_PYSPARK = "pyspark==3.5.7"
