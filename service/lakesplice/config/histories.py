"""The configuration as history tables beside tables of current rows see it.

A topic whose entry has `also: [history]` feeds two tables. Everything that reads topics asks the
settings about the source's table. So what feeds the history tables has settings of its own, which
say about the same names what holds for the history table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from lakesplice.config.sections.tables import TableSettings
from lakesplice.config.settings import Settings
from lakesplice.errors import UsageError
from lakesplice.model.names import TableName, possible_tables

_UNREAD = TableSettings(match="*", read=False)


class HistorySettings(Settings):
    """Settings in which each table of the source is stored as its history table. Tables without
    one aren't read.
    """

    def table(self, name: TableName) -> TableSettings | None:
        """Return the settings of the history table."""
        entry = super().table(name)
        has_one = entry is not None and entry.has_history_beside
        return entry.of_history_beside() if entry is not None and has_one else _UNREAD

    def target(self, name: TableName) -> TableName:
        """Return the history table; for a source's table that has none, its only table."""
        entry = super().table(name)
        return name if entry is None else _stored_as(entry, name)

    def has_history(self, name: TableName) -> bool:
        """Whether the source's table has a history table beside the one of current rows."""
        entry = super().table(name)
        return entry is not None and entry.has_history_beside


def history_settings(settings: Settings) -> HistorySettings | None:
    """Return the settings of all history tables that are beside others; None if there are none."""
    if not any(entry.has_history_beside for entry in settings.tables):
        return None
    return HistorySettings.model_construct(settings.model_fields_set, **dict(settings))


def settings_for(settings: Settings, table: TableName, topics: Iterable[str]) -> Settings:
    """Return the settings by which these topics feed a table of the lake: other ones if it is the
    history table beside another table.
    """
    beside = history_settings(settings)
    if beside is None:
        return settings
    origins = (origin for topic in topics for origin in _origins(topic))
    is_beside = any(beside.has_history(one) and beside.target(one) == table for one in origins)
    return beside if is_beside else settings


def _origins(topic: str) -> Iterator[TableName]:
    """Yield the source's tables that a topic may belong to; none if its name isn't valid."""
    with suppress(UsageError):
        yield TableName.from_topic(topic)
    yield from possible_tables(topic)


def _stored_as(entry: TableSettings, name: TableName) -> TableName:
    return entry.history_target(name) if entry.has_history_beside else entry.target(name)
