"""Judges a topic's first and newest records: their format, and the effects of connector
settings.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakesplice.planning.diagnosis.finding import Area, Finding, Verdict, counted, first_names

_AREA = Area("records")
# The source itself behaves so; no setting changes it.
_NO_SETTING = frozenset(("foreign-key-cascades",))


@dataclass(frozen=True, slots=True)
class RecordFacts:
    """The result of decoding some records of a topic; all counts are 0 for a topic without records.

    `format` is None if none was recognised. `changes` counts those that came from the binlog, not
    from a snapshot. `dead` counts what would become dead letters, by their codes. `stop` is the
    code and the reason for which the table would be parked. `suspects` are settings that change
    values, each as `name: what it does; what to do`.
    """

    topic: str
    records: int
    format: str | None = None
    changes: int = 0
    dead: Mapping[str, int] = field(default_factory=dict)
    stop: tuple[str, str] | None = None
    suspects: frozenset[str] = frozenset()


def judge_records(facts: Sequence[RecordFacts], unread: Sequence[str] = ()) -> Iterator[Finding]:
    """Judge the records of all topics; `unread` are topics for which the time didn't suffice."""
    if not facts and not unread:
        return
    yield from _judge_formats(facts)
    yield from _judge_stops(facts)
    yield from _judge_dead(facts)
    yield from _judge_effects(facts)
    if unread:
        yield _AREA.unknown(
            "not looked at",
            f"{counted(len(unread), 'topic')} ({first_names(unread)}): the time was up",
            "give more time with --timeout",
        )


def _judge_formats(facts: Sequence[RecordFacts]) -> Iterator[Finding]:
    formats = Counter(one.format for one in facts if one.format)
    if formats:
        seen = ", ".join(f"{name} in {counted(n, 'topic')}" for name, n in formats.most_common())
        yield _AREA.ok("format", seen)
    if strange := [one.topic for one in facts if one.records and not one.format]:
        yield _AREA.problem(
            "format",
            f"{first_names(strange)}: no record is an event of a known format",
            "exclude the topic by kafka.topic_pattern, or state its `format` under tables",
        )
    if empty := [one.topic for one in facts if not one.records]:
        yield _AREA.warning(
            "no records",
            f"{counted(len(empty), 'topic')} ({first_names(empty)})",
            "if rows are expected, check that the connector runs and took its snapshot",
        )


def _judge_stops(facts: Sequence[RecordFacts]) -> Iterator[Finding]:
    """Report each code once, since many topics may have the same one."""
    stopped: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for one in facts:
        if one.stop is not None:
            code, reason = one.stop
            stopped[code].append((one.topic, reason))
    for code, found in sorted(stopped.items()):
        topic, reason = min(found)
        what, _, todo = reason.partition("; ")
        others = [other for other, _ in found if other != topic]
        more = f" (and so {first_names(others)})" if others else ""
        remedy = f"{todo}; " if todo else ""
        yield _AREA.problem(
            "would park",
            f"{topic}{more}: {what}",
            f'{remedy}see "{code}" in docs/operations.md',
        )


def _judge_dead(facts: Sequence[RecordFacts]) -> Iterator[Finding]:
    topics: defaultdict[str, list[str]] = defaultdict(list)
    for one in facts:
        for code in one.dead if one.format else ():
            topics[code].append(one.topic)
    for code, names in sorted(topics.items()):
        count = sum(one.dead.get(code, 0) for one in facts)
        yield _AREA.problem(
            "can't be decoded",
            f"{first_names(names)}: {counted(count, 'record')} ({code})",
            f'they would be dead letters: see "{code}" in docs/operations.md',
        )


def _judge_effects(facts: Sequence[RecordFacts]) -> Iterator[Finding]:
    topics: defaultdict[str, list[str]] = defaultdict(list)
    for one in facts:
        for text in one.suspects:
            topics[text].append(one.topic)
    for text, names in sorted(topics.items()):
        name, _, advice = text.partition(": ")
        effect, _, remedy = advice.partition("; ")
        verdict = Verdict.WARNING if name in _NO_SETTING else Verdict.PROBLEM
        remedy = remedy or "see docs/formats.md"
        yield Finding("records", name, verdict, f"{first_names(names)}: {effect}", remedy)
    changes = sum(one.changes for one in facts)
    if topics or not any(one.records for one in facts):
        return
    if changes:
        verb = "shows" if changes == 1 else "show"
        seen = f"{counted(changes, 'change')} {verb} no setting that alters values"
        yield _AREA.ok("values", seen)
    else:
        yield _AREA.unknown(
            "values",
            "all records are of snapshots, which show no setting's effect on values",
            "change a row at the source, then run doctor again; or give --connect",
        )
