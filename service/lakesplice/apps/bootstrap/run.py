"""Fills the tables of a configuration, one after another."""

from __future__ import annotations

from collections.abc import Iterator

from lakesplice.apps.bootstrap.fill_tools import Database, FillTools, fill_tools
from lakesplice.apps.bootstrap.table_work import TableWork
from lakesplice.apps.bootstrap.wishes import TableOutcome, Wishes
from lakesplice.apps.table_commands.dispatch import RequestWait
from lakesplice.config import Settings
from lakesplice.errors import LakespliceError, UsageError
from lakesplice.model.names import TableName
from lakesplice.spark.kafka.topics import Topic
from lakesplice.table.protocol.ports import UNWATCHED, Progress


def bootstrap(
    settings: Settings,
    database: Database | None,
    wishes: Wishes,
    progress: Progress = UNWATCHED,
    patience: RequestWait | None = None,
) -> Iterator[TableOutcome]:
    """Fill the tables that match, and yield the result of each. Blocks until all are filled.

    Tables are independent: an error concerns one table. Raises `ConfigurationError`, and
    `SourceUnavailable` if the broker or the database can't be reached at all.
    """
    with fill_tools(settings, database, progress, patience) as tools:
        topics = tools.topics(wishes.tables)
        if wishes.tables and not topics:
            raise UsageError("no topic of these tables", tables=list(wishes.tables))
        if wishes.files and len(topics) > 1:
            raise UsageError("files belong to one table; name it with --tables", topics=len(topics))
        for origin, topic in topics:
            yield _outcome(tools, wishes, origin, topic)


def _outcome(tools: FillTools, wishes: Wishes, origin: TableName, topic: Topic) -> TableOutcome:
    name = str(origin)
    try:
        return TableWork(tools, wishes, origin, topic).done()
    except UsageError as error:
        return TableOutcome(name, topic.name, "refused", detail=str(error))
    except LakespliceError as error:
        return TableOutcome(name, topic.name, "stopped", detail=str(error))
