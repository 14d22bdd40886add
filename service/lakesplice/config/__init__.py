"""Settings from one YAML file and the environment; no other code reads these."""

from lakesplice.config.reading import lake_options, load
from lakesplice.config.sections.kafka import KafkaSettings
from lakesplice.config.sections.tables import TableSettings
from lakesplice.config.sections.upkeep import (
    CompactionSettings,
    IndexSettings,
    LogSettings,
    MergeSettings,
    VacuumSettings,
)
from lakesplice.config.sections.watching import LoggingSettings, MetricsSettings
from lakesplice.config.settings import LakeSettings, Settings, SparkSettings

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
