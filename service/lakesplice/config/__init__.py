"""Settings from one YAML file and the environment; nothing else reads either."""

from lakesplice.config.kafka import KafkaSettings
from lakesplice.config.reading import lake_options, load
from lakesplice.config.settings import (
    LakeSettings,
    Settings,
    SparkSettings,
    TableSettings,
)
from lakesplice.config.upkeep import (
    CompactionSettings,
    IndexSettings,
    LogSettings,
    MergeSettings,
    VacuumSettings,
)
from lakesplice.config.watching import LoggingSettings, MetricsSettings

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
    "lake_options",
    "load",
]
