"""Settings from one YAML file and the environment; nothing else reads either."""

from lakesplice.config.reading import load
from lakesplice.config.settings import (
    CompactionSettings,
    IndexSettings,
    KafkaSettings,
    LakeSettings,
    LoggingSettings,
    LogSettings,
    MetricsSettings,
    Settings,
    SparkSettings,
    TableSettings,
)

__all__ = [
    "CompactionSettings",
    "IndexSettings",
    "KafkaSettings",
    "LakeSettings",
    "LogSettings",
    "LoggingSettings",
    "MetricsSettings",
    "Settings",
    "SparkSettings",
    "TableSettings",
    "load",
]
