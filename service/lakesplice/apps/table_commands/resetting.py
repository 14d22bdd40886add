"""Tables whose topics are read again: from other offsets, or from the start into an empty table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakesplice.apps.table_commands.command_table import CommandResult, CommandTable
from lakesplice.errors import ParkedTableError, UsageError
from lakesplice.model.manifest import Manifest, SourceState
from lakesplice.planning.sources.operator_directions import moved, skipping
from lakesplice.table.ingest.reset import TopicStart, plan_reset
from lakesplice.table.protocol.intents import Redirect

EARLIEST = "earliest"


@dataclass(frozen=True, slots=True)
class Reset:
    """Where a table is to be read from again: `offsets` by partition, or `to` the earliest ones
    (`EARLIEST`) or a moment in milliseconds; or with `anew`, from the start, without the rows that
    it has.
    """

    offsets: Mapping[int, int]
    to: str | int | None
    topic: str
    anew: bool
    skip: bool
    dry_run: bool
    why: str


def reset(table: CommandTable, wanted: Reset) -> CommandResult:
    """Let the table's topics be read from other offsets, or reload the table. Blocks.

    `UsageError` where the topic, a partition or who knows the broker is missing, and where records
    would be skipped without being asked for; `ParkedTableError`.
    """
    table.history_parameters = {**table.history_parameters, "why": wanted.why}
    if not table.snapshot.manifest.sources:
        raise UsageError("the table is fed by hand, so no topic is read for it")
    return _reload(table, wanted) if wanted.anew else _read_again(table, wanted)


def _reload(table: CommandTable, wanted: Reset) -> CommandResult:
    starts = _starts(table, list(table.snapshot.manifest.sources), None)
    gone = sum(file.rows for file in table.snapshot.manifest.files.values())
    late = [topic for topic, start in sorted(starts.items()) if any(start.offsets.values())]
    lost = "".join(f"; of {topic} the broker has lost the beginning" for topic in late)
    if wanted.dry_run:
        return CommandResult(
            f"{gone} rows would be deleted, and inserted again as the topic has them{lost}"
        )
    table.commit_with_retries(lambda: plan_reset(table.snapshot, starts, table.generation))
    version = table.snapshot.version
    return CommandResult(
        f"{gone} rows left in version {version}, to come again from the topic{lost}"
    )


def _read_again(table: CommandTable, wanted: Reset) -> CommandResult:
    def source_now() -> SourceState:
        source = _source_of(table.snapshot.manifest, wanted.topic)
        if table.snapshot.manifest.parked_for(source.topic) is not None:
            raise ParkedTableError(
                "the table is parked; `lakesplice unpark --from-offset` lets it continue elsewhere",
                topic=source.topic,
            )
        return source

    def direction() -> Redirect:
        return table.redirected(source=moved(source_now(), offsets))

    source, offsets = source_now(), wanted.offsets
    if wanted.to is not None:
        since_ms = None if wanted.to == EARLIEST else int(wanted.to)
        found = _starts(table, [source.topic], since_ms)[source.topic].offsets
        offsets = {at: offset for at, offset in found.items() if at in source.partitions}
    moved(source, offsets)
    skipped = skipping(source, offsets)
    if skipped and not wanted.skip:
        raise UsageError(
            "records that were never read would be skipped; give --skip if you want that",
            offsets_by_partition=skipped,
        )
    ways = "; ".join(
        f"partition {at} is moved from {source.partitions[at].next_offset} to {offset}"
        for at, offset in sorted(offsets.items())
    )
    if wanted.dry_run:
        return CommandResult(f"{ways}: nothing done yet")
    table.commit_with_retries(direction)
    return CommandResult(f"{ways}, in version {table.snapshot.version}")


def _source_of(manifest: Manifest, topic: str) -> SourceState:
    if topic and topic not in manifest.sources:
        raise UsageError("the table has no such topic", topic=topic, topics=list(manifest.sources))
    if not topic and manifest.is_merged:
        topics = list(manifest.sources)
        raise UsageError("the table has several topics; say which with --topic", topics=topics)
    return manifest.sources[topic] if topic else next(iter(manifest.sources.values()))


def _starts(
    table: CommandTable, topics: Sequence[str], since_ms: int | None
) -> Mapping[str, TopicStart]:
    if table.starts is None:
        raise UsageError(
            "no service runs, and only a service knows where a topic begins; start the service"
            " and give the command again, or give --offset"
        )
    return table.starts(topics, since_ms)


def reset_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Read what a request says of it; `KeyError`, `TypeError` or `ValueError` if it doesn't."""
    to = arguments["to"]
    wanted = Reset(
        offsets={int(number): int(offset) for number, offset in arguments["offsets"]},
        to=to if to in (None, EARLIEST) else int(to),
        topic=str(arguments["topic"]),
        anew=bool(arguments["anew"]),
        skip=bool(arguments["skip"]),
        dry_run=bool(arguments["dry_run"]),
        why=str(arguments["why"]),
    )
    return {"wanted": wanted}
