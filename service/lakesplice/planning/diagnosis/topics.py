"""Judges which topics the configuration reads, and which table each one feeds."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakesplice.planning.diagnosis.finding import Area, Finding, counted, first_names

_AREA = Area("topics")


@dataclass(frozen=True, slots=True)
class SelectionFacts:
    """The topics whose whole name matches the pattern: `tables` maps those that are read to their
    table in the lake; those that aren't read have the reason. `others` are all topics that don't
    match. `shards` are the tables whose key distinguishes their topics. `histories` maps topics to
    the history tables beside their tables.
    """

    pattern: str
    tables: Mapping[str, str] = field(default_factory=dict)
    excluded: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    others: Sequence[str] = ()
    shards: frozenset[str] = frozenset()
    histories: Mapping[str, str] = field(default_factory=dict)


def judge_selection(facts: SelectionFacts) -> Iterator[Finding]:
    """Judge what the pattern matches, what is refused or left out, and tables of several topics."""
    matching = [*facts.tables, *facts.excluded, *facts.refused]
    if not matching:
        yield _nothing_matches(facts)
        return
    seen = f"{counted(len(facts.tables), 'topic')} ({first_names(facts.tables)})"
    if facts.tables:
        yield _AREA.ok("matched", seen)
    for topic, reason in sorted(facts.refused.items()):
        yield _AREA.problem(
            "refused",
            f"{topic}: {reason}",
            "exclude it by kafka.topic_pattern, or by `read: false` under tables",
        )
    if facts.excluded:
        reasons = ", ".join(sorted(set(facts.excluded.values())))
        yield _AREA.ok("left out", f"{first_names(facts.excluded)}: {reasons}")
    yield from _shared_tables(facts)


def _nothing_matches(facts: SelectionFacts) -> Finding:
    seen = f"kafka.topic_pattern {facts.pattern} matches no topic as a whole name"
    if not facts.others:
        return _AREA.problem(
            "matched",
            f"{seen}: we see no topic at all",
            "let the connector write its snapshot first; where Kafka has ACLs, allow Describe on"
            " the topics",
        )
    near = difflib.get_close_matches(facts.pattern.replace("\\", ""), facts.others, 1, 0.5)
    meant = f"; did you mean {near[0]}?" if near else ""
    return _AREA.problem(
        "matched",
        f"{seen}; the broker has {first_names(facts.others)}{meant}",
        "correct kafka.topic_pattern: a regular expression such as shop\\..*",
    )


def _shared_tables(facts: SelectionFacts) -> Iterator[Finding]:
    of_table: defaultdict[str, list[str]] = defaultdict(list)
    for topic, table in (*facts.tables.items(), *facts.histories.items()):
        of_table[table].append(topic)
    both = {*facts.tables.values()} & {*facts.histories.values()}
    for table, topics in sorted(of_table.items()):
        if table in both:
            yield _AREA.problem(
                "one table",
                f"{table} is a table of current rows and a history table, of {first_names(topics)}",
                "give the history another name (`history.to` under tables)",
            )
        elif len(topics) > 1 and table not in facts.shards:
            yield _AREA.problem(
                "one table",
                f"{first_names(topics)} are all for {table}",
                "give each a table of its own (`to` under tables), or add to shape.key what "
                "distinguishes their rows (docs/shaping.md)",
            )
