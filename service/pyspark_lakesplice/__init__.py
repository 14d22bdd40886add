"""Makes Spark know the format "lakesplice": it looks for `DefaultSource` in packages so named."""

from lakesplice.apps.spark_format.source import LakespliceSource as DefaultSource

__all__ = ["DefaultSource"]
