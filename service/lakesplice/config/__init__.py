"""Settings from one YAML file and the environment; nothing else reads either."""

from lakesplice.config.reading import load
from lakesplice.config.settings import (
    CompactionSettings,
    IndexSettings,
    KafkaSettings,
    LakeSettings,
    LoggingSettings,
    MetricsSettings,
    Settings,
    SparkSettings,
    TableSettings,
)
from lakesplice.config.upkeep import LogSettings, MergeSettings, VacuumSettings

__all__ = [
    "CompactionSettings",
    "IndexSettings",
    "KafkaSettings",
    "LakeSettings",
    "LogSettings",
    "LoggingSettings",
    "MergeSettings",
    "MetricsSettings",
    "Settings",
    "SparkSettings",
    "TableSettings",
    "VacuumSettings",
    "load",
]
