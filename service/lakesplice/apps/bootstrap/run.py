"""Fills the tables of a configuration, one after another."""

from __future__ import annotations

from collections.abc import Iterator

from lakesplice.apps.bootstrap.fill_request import FillRequest, TableOutcome
from lakesplice.apps.bootstrap.fill_tools import Database, FillTools, fill_tools
from lakesplice.apps.bootstrap.table_work import TableWork
from lakesplice.apps.table_commands.dispatch import RequestWait
from lakesplice.config import Settings
from lakesplice.errors import LakespliceError, UsageError
from lakesplice.model.names import TableName
from lakesplice.spark.kafka.topics import Topic
from lakesplice.table.protocol.ports import UNWATCHED, Progress


def bootstrap(
    settings: Settings,
    database: Database | None,
    request: FillRequest,
    progress: Progress = UNWATCHED,
    patience: RequestWait | None = None,
) -> Iterator[TableOutcome]:
    """Fill the tables that match, and yield the result of each. Blocks until all are filled.

    Tables are independent: an error concerns one table. Raises `ConfigurationError`, and
    `SourceUnavailable` if the broker or the database can't be reached at all.
    """
    with fill_tools(settings, database, progress, patience) as tools:
        topics = tools.topics(request.tables)
        if request.tables and not topics:
            raise UsageError(
                "no topic that is read has these tables; check --tables and kafka.topic_pattern",
                tables=list(request.tables),
            )
        if request.files and len(topics) > 1:
            raise UsageError("files belong to one table; name it with --tables", topics=len(topics))
        for origin, topic in topics:
            yield _outcome(tools, request, origin, topic)


def _outcome(
    tools: FillTools, request: FillRequest, origin: TableName, topic: Topic
) -> TableOutcome:
    name = str(origin)
    try:
        return TableWork(tools, request, origin, topic).done()
    except UsageError as error:
        return TableOutcome(name, topic.name, "refused", detail=str(error))
    except LakespliceError as error:
        return TableOutcome(name, topic.name, "stopped", detail=str(error))
