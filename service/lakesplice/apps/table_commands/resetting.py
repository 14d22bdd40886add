"""Tables whose topics are read again: from other offsets, or from the start into an empty table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakesplice.apps.table_commands.command_table import CommandResult, CommandTable
from lakesplice.apps.table_commands.reset_target import EARLIEST, LATEST, ResetTarget
from lakesplice.apps.table_commands.topic_search import search_topic
from lakesplice.errors import ParkedTableError, UsageError
from lakesplice.model.manifest import Manifest
from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offsets
from lakesplice.model.progress.source_state import SourceState
from lakesplice.planning.sources.gaps import read_until
from lakesplice.planning.sources.operator_directions import moved, skipping
from lakesplice.table.ingest.reset import TopicStart, plan_reset
from lakesplice.table.protocol.intents import Redirect


@dataclass(frozen=True, slots=True)
class Reset:
    """From where to read a table again: `to` a target; or with `anew`, from the start, without the
    rows that it has.
    """

    to: ResetTarget | None
    topic: str
    anew: bool
    skip: bool
    dry_run: bool
    why: str


def reset(table: CommandTable, wanted: Reset) -> CommandResult:
    """Let the table's topics be read from other offsets, or reload the table. Blocks.

    `UsageError` where the topic, a partition or who knows the broker is missing, where the broker
    lacks the offsets, and where records would be skipped without being asked for;
    `ParkedTableError`.
    """
    table.history_parameters = {**table.history_parameters, "why": wanted.why}
    if not table.snapshot.manifest.sources:
        raise UsageError("the table is fed by hand, so no topic is read for it")
    if wanted.anew or wanted.to is None:
        return _reload(table, wanted)
    return _read_again(table, wanted, wanted.to)


def _reload(table: CommandTable, wanted: Reset) -> CommandResult:
    starts = _starts(table, list(table.snapshot.manifest.sources), None)
    gone = table.snapshot.manifest.stored_rows
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


def _read_again(table: CommandTable, wanted: Reset, target: ResetTarget) -> CommandResult:
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

    source = source_now()
    topic = _topic_if_known(table, source.topic, target)
    offsets = _offsets(table, source, target, topic)
    moved(source, offsets)
    _require_there(offsets, topic)
    skipped = skipping(source, offsets)
    if skipped and not wanted.skip:
        raise UsageError(
            "records that were never read would be skipped; give --skip if you want that",
            offsets_by_partition=skipped,
        )
    moves = [_Move.of(source, at, offset, topic) for at, offset in sorted(offsets.items())]
    facts = {"topic": source.topic, "partitions": [move.facts for move in moves]}
    ways = "; ".join(move.text for move in moves)
    if wanted.dry_run:
        return CommandResult(f"{ways}: nothing done yet", facts)
    table.commit_with_retries(direction)
    version = table.snapshot.version
    return CommandResult(f"{ways}, in version {version}", {**facts, "version": version})


@dataclass(frozen=True, slots=True)
class _Move:
    """A partition's next offset before and after, how many records that were read before are read
    again by it, as far as the broker is known to have them, and how many are never read.
    """

    partition: int
    start: int
    end: int
    again: int
    skipped: int

    @classmethod
    def of(cls, source: SourceState, at: int, offset: int, topic: TopicStart | None) -> _Move:
        state = source.partitions[at]
        first = max(offset, 0 if topic is None else topic.earliest.get(at, 0))
        again, skipped = read_until(state) - first, offset - read_until(state)
        return cls(at, state.next_offset, offset, max(0, again), max(0, skipped))

    @property
    def text(self) -> str:
        """The move in words."""
        if self.start == self.end:
            return f"partition {self.partition} stays at {self.end}"
        way = f"partition {self.partition} is moved from {self.start} to {self.end}"
        again = f"up to {self.again} records are read again" if self.again else ""
        skipped = f"up to {self.skipped} records are never read" if self.skipped else ""
        return f"{way} ({again or skipped})" if again or skipped else way

    @property
    def facts(self) -> dict[str, int]:
        """The move as values of JSON."""
        return {
            "partition": self.partition,
            "from": self.start,
            "to": self.end,
            "read_again": self.again,
            "skipped": self.skipped,
        }


def _topic_if_known(table: CommandTable, topic: str, target: ResetTarget) -> TopicStart | None:
    """The topic as the broker has it; None without a service, if the target needs none."""
    if table.starts is None and target.offsets:
        return None
    return _starts(table, [topic], None)[topic]


def _offsets(
    table: CommandTable,
    source: SourceState,
    target: ResetTarget,
    topic: TopicStart | None,
) -> Offsets:
    if target.offsets or topic is None:
        return dict(target.offsets)
    found: Offsets
    if target.word == EARLIEST:
        found = topic.earliest
    elif target.word == LATEST:
        found = topic.ends
    elif target.moment_ms is not None:
        found = _starts(table, [source.topic], target.moment_ms)[source.topic].offsets
    else:
        found = search_topic(table, source, target, topic)
    return {at: offset for at, offset in found.items() if at in source.partitions}


def _require_there(offsets: Offsets, topic: TopicStart | None) -> None:
    """Refuse offsets that the broker doesn't have, since the table would be parked for them."""
    if topic is None:
        return
    for at, offset in sorted(offsets.items()):
        earliest, end = topic.earliest.get(at, 0), topic.ends.get(at, offset)
        if not earliest <= offset <= end:
            raise UsageError(
                "the broker doesn't have that offset; its first offset and its end are given",
                partition=at,
                offset=offset,
                first=earliest,
                end=end,
            )


def _source_of(manifest: Manifest, topic: str) -> SourceState:
    if topic and topic not in manifest.sources:
        raise UsageError("the table has no such topic", topic=topic, topics=list(manifest.sources))
    if not topic and manifest.is_merged:
        topics = list(manifest.sources)
        raise UsageError("the table has several topics; say which with --topic", topics=topics)
    return manifest.sources[topic] if topic else next(iter(manifest.sources.values()))


def _starts(
    table: CommandTable, topics: Sequence[str], since_ms: EpochMs | None
) -> Mapping[str, TopicStart]:
    if table.starts is None:
        raise UsageError(
            "no service runs, and only a service knows where a topic begins; start the service"
            " and run the command again, or give offsets"
        )
    return table.starts(topics, since_ms)


def reset_request(topic: str, offsets: Offsets, why: str) -> dict[str, object]:
    """Return the arguments of a request that a topic be read from offsets, also if they skip
    records. `reset_arguments` reads them.
    """
    to = ",".join(f"{at}:{offset}" for at, offset in sorted(offsets.items()))
    flags = {"anew": False, "skip": True, "dry_run": False}
    return {"to": to, "topic": topic, "why": why, **flags}


def reset_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Read what a request says of it; `KeyError`, `TypeError` or `ValueError` if it doesn't."""
    to = arguments["to"]
    try:
        target = None if to is None else ResetTarget.of(str(to))
    except UsageError as error:
        raise ValueError(str(error)) from error
    if (target is None) is not bool(arguments["anew"]):
        raise ValueError("a reset has either a target, or reads the table anew")
    wanted = Reset(
        to=target,
        topic=str(arguments["topic"]),
        anew=bool(arguments["anew"]),
        skip=bool(arguments["skip"]),
        dry_run=bool(arguments["dry_run"]),
        why=str(arguments["why"]),
    )
    return {"wanted": wanted}
