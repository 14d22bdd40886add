"""Fills shadows with rows from files that were written at a known place in the source's binlog."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from lakesplice.apps.bootstrap.fill_request import FillRequest
from lakesplice.apps.bootstrap.fill_tools import FillTools
from lakesplice.apps.bootstrap.repeated_keys import repeated_keys
from lakesplice.apps.bootstrap.row_files import (
    FilePart,
    RowFiles,
    file_parts,
    files_in,
    split_glob,
)
from lakesplice.apps.bootstrap.shadow_upkeep import ShadowUpkeep
from lakesplice.apps.bootstrap.source_chunks import position_of
from lakesplice.apps.bootstrap.table_filling import FEED_SECONDS, settled
from lakesplice.apps.bootstrap.topic_images import first_positions, newest_schema
from lakesplice.errors import UsageError
from lakesplice.formats.events.blocks.type_mappings import mapped_schema
from lakesplice.formats.events.values.declared_types import DeclaredType
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offsets
from lakesplice.model.position import Position
from lakesplice.model.progress.shadow_plan import FilledFrom, ShadowPlan
from lakesplice.model.progress.source_state import SourceState
from lakesplice.model.source_schema import SourceSchema
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.intake.read_rows import ReadRows
from lakesplice.planning.source_rows.file_values import with_stated_types
from lakesplice.spark.kafka.topics import Topic
from lakesplice.storage.source.binlog_places import BinlogPlace
from lakesplice.storage.stores import AnyStore
from lakesplice.table.files.index_runs import RunCache
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.ingest.read_rows_commit import commit_chunks
from lakesplice.table.protocol.layout import random_name


@dataclass
class FilesFill:
    """Fills shadows of the table `name`; its table at the source is `origin`."""

    tools: FillTools
    request: FillRequest
    name: TableName
    origin: TableName
    topic: Topic

    def plan(self) -> ShadowPlan:
        """Return the files' parts, and the topic's first offsets, from which it has all changes
        since the files were written. Blocks.

        Raises `UsageError` if there are no such files, if the topic doesn't reach back to their
        position, or if the table has no key.
        """
        tools, topic = self.tools, self.topic
        folder, pattern = split_glob(self.request.files)
        parts = file_parts(self._files(folder), pattern)
        start = position_of(binlog_place(self.request.position))
        reading = tools.reading(self.origin, SourceState(topic.name, topic.id))
        schemas = tools.shadow_feed.schemas
        require_key(newest_schema(tools.reader, topic, reading, schemas))
        firsts = first_positions(tools.reader, topic, reading, schemas)
        require_stream_since(start, topic.earliest, firsts, trusted=self.request.connector_ran)
        return ShadowPlan(
            shadow=random_name(tools.entropy),
            topic=topic.name,
            topic_id=topic.id,
            server=folder,
            database=self.origin.database,
            table=self.origin.table,
            start=start,
            created_ms=tools.clock.now_ms(),
            ends={at: topic.earliest[at] for at in topic.latest},
            bounds=tuple(part.as_bound for part in parts),
            filled_from=FilledFrom.FILES,
        )

    def fill(self, table: DriverTable, plan: ShadowPlan) -> bool:
        """Commit the missing parts and the topic's changes since then. Return whether every
        partition has a newer change. Blocks; raises `UsageError` if a row can't be stored exactly.
        """
        tools = self.tools
        reading = tools.reading(self.origin, table.source)
        schema, row_files = self._row_files(self._files(plan.server), reading)
        runs = RunCache()
        upkeep = ShadowUpkeep(table, tools.entropy, runs)

        def feed() -> None:
            tools.feed(table, self.name, self.origin, upkeep.after_batch)

        backfill = table.manifest.backfill
        assert backfill is not None, "the table is a shadow"
        missing = set(backfill.open_chunks())
        tools.progress.expect(len(missing))
        feed()
        fed = tools.clock.monotonic()
        with closing(row_files) as files, repeated_keys() as keys:
            for chunk, bound in enumerate(plan.bounds):
                part = FilePart.of_bound(bound)
                if chunk not in missing:
                    keys.add(files.keys(part))
                    continue
                images = files.rows(part)
                keys.add(images.select(list(schema.key)))
                rows = [ReadRows(schema, images, plan.start, plan.created_ms)]
                refused = commit_chunks(table, {chunk: rows}, reading, tools.entropy, runs)
                if refused is not None:
                    raise UsageError(
                        f"the table can't take a row: {refused.reason}", path=part.path
                    )
                upkeep.merge_runs()
                tools.progress.advance(1)
                if tools.clock.monotonic() - fed > FEED_SECONDS:
                    feed()
                    fed = tools.clock.monotonic()
            if repeated := keys.count():
                raise UsageError(
                    "several rows of the files have one key, and the table can have only one of"
                    " them; give files without such rows, and --again",
                    rows=repeated,
                )
        return settled(table, feed, tools.clock, self.request.settle_seconds)

    def _row_files(self, store: AnyStore, reading: RecordReading) -> tuple[SourceSchema, RowFiles]:
        """Return the columns of the topic's newest record, and the files' rows in them."""
        tools, unmapped = self.tools, replace(reading, mappings=())
        topic = tools.catalogue.describe([self.topic.name])[self.topic.name]
        sent = newest_schema(tools.reader, topic, unmapped, tools.shadow_feed.schemas)
        stated = with_stated_types(sent, declared_types(reading))
        excluded = self.request.excluded_from(self.origin.table)
        row_files = RowFiles(store, stated, excluded, reading.mappings)
        return mapped_schema(sent, reading.mappings), row_files

    def _files(self, folder: str) -> AnyStore:
        return files_in(folder, self.tools.settings.lake.options)


def declared_types(reading: RecordReading) -> Mapping[str, DeclaredType]:
    """Return the newest types of columns that records don't describe, by column."""
    versions = () if reading.history is None else reading.history.versions
    reported = versions[-1].columns if versions else {}
    return {**(reading.declared or {}), **reported}


def require_key(schema: SourceSchema) -> None:
    """Check that a topic's rows have a key; raise `UsageError` if they have none."""
    if not schema.key:
        raise UsageError(
            "the table has no primary or unique key, so nothing connects rows of files with later"
            " changes; let the connector take a snapshot of it"
        )


def binlog_place(text: str) -> BinlogPlace:
    """Parse a place such as `mysql-bin.000012:345`; `UsageError` for any other text."""
    file, _, offset = text.rpartition(":")
    if not offset.isdecimal() or not file.rpartition(".")[2].isdecimal():
        raise UsageError(
            "write the position as the binlog's file and offset, such as mysql-bin.000012:345",
            given=text,
        )
    return BinlogPlace(file, int(offset))


def require_stream_since(
    start: Position,
    earliest: Offsets,
    firsts: Mapping[int, Position],
    *,
    trusted: bool = False,
) -> None:
    """Check that a topic has every change since a position; raise `UsageError` if that isn't known.

    `earliest` has the first offset of each partition, `firsts` the positions of the first records.
    If the broker deleted records of a partition, its first record must be at or below the position.
    Otherwise one such record in any partition shows that the connector ran by then; with `trusted`
    the caller says so.
    """
    cut = [at for at, offset in earliest.items() if offset]
    if short := [at for at in cut if at not in firsts or firsts[at] > start]:
        raise UsageError(
            "the topic's retention deleted records from after the files' position; write newer"
            " files",
            partitions=sorted(short),
        )
    if not trusted and all(position > start for position in firsts.values()):
        raise UsageError(
            "the topic has no record from before the files' position, so nothing shows that the"
            " connector ran by then; if it did, give --connector-ran"
        )
