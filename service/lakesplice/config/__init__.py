"""Settings from one YAML file and the environment; no other code reads these.

Offers `load`, the settings as values, their printed form, their documentation and their schema. It
must not know what uses them, start an engine or ask a server.
"""

from lakesplice.config.histories import HistorySettings, history_settings, settings_for
from lakesplice.config.reading import lake_options, load
from lakesplice.config.sections.kafka import KafkaSettings
from lakesplice.config.sections.tables import TableSettings
from lakesplice.config.sections.upkeep import (
    ClusterSettings,
    CompactionSettings,
    IndexSettings,
    LogSettings,
    MergeSettings,
    VacuumSettings,
)
from lakesplice.config.sections.watching import LoggingSettings, MetricsSettings
from lakesplice.config.settings import LakeSettings, Settings, SparkSettings

__all__ = [
    "ClusterSettings",
    "CompactionSettings",
    "HistorySettings",
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
    "history_settings",
    "lake_options",
    "load",
    "settings_for",
]
