"""In every kind of table `verify` finds exactly the wrong rows, or reports why it can't compare
it.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakesplice.apps.verifying.report import ComparisonOutcome, DifferenceKind, TableReport
from lakesplice.apps.verifying.verification import VerificationRequest
from tests.support.mirrored import Mirror, MirroredTable, Row
from tests.support.sources import SourceServer
from tests.support.table_kinds import (
    Alteration,
    TableKind,
    appended,
    damaged,
    random_alterations,
    random_kind,
    with_masked_key,
)

_ROWS, _FAULTS = 40, 6
_KINDS, _KINDS_IN_THE_GATE = 8, 4
Expected = dict[str, tuple[DifferenceKind, frozenset[str]]]
Make = Callable[..., Mirror]


@pytest.fixture
def mirrored(mariadb: SourceServer, tmp_path: Path) -> Iterator[Make]:
    made: list[Mirror] = []

    def make(table: MirroredTable, beside: Mirror | None = None) -> Mirror:
        database = f"db_{secrets.token_hex(4)}"
        made.append(Mirror(mariadb, database, tmp_path, table, beside))
        return made[-1]

    yield make
    for mirror in made:
        mirror.close()


def live(
    mirror: Mirror, kind: TableKind, changes: Sequence[Alteration], chance: random.Random
) -> tuple[Expected, TableKind]:
    """Let the table live for a while, with some first ones of these changes, and its copy be wrong
    here and there; return where, and what the changes made of it.
    """
    first, last = sorted(chance.choices(range(len(changes) + 1), k=2))
    rows = {number: kind.row(number, chance) for number in range(_ROWS)}
    mirror.insert(*rows.values())
    faulty = chance.sample(range(_ROWS), _FAULTS)
    if kind.table.not_inserts is None:
        mirror.feed()
        steady = sorted(rows.keys() - set(faulty))
        for number in chance.sample(steady, 8):
            replaced(mirror, kind, kind.row(number, chance))
        kind = altered(mirror, kind, changes[:first])
        mirror.feed()
        if chance.random() < 0.5:
            mirror.driver.compact()
        kind = altered(mirror, kind, changes[first:last])
        for number in chance.sample(steady, 8):
            gone = chance.random() < 0.5
            replaced(mirror, kind, None if gone else kind.row(number, chance), rows[number])
        for number in faulty:  # so that there are events to lie in
            rows[number] = kind.row(number, chance)
            replaced(mirror, kind, rows[number])
    return with_faults(mirror, kind, [rows[number] for number in faulty], chance), kind


def altered(mirror: Mirror, kind: TableKind, changes: Iterable[Alteration]) -> TableKind:
    """Let the source alter the table, and write a row after each change: without one, a column that
    is dropped and another that is added may be a rename, and the table parks.
    """
    for change in changes:
        mirror.alter(change.statement, change.kind.table, change.formerly)
        kind = change.kind
        mirror.insert_mark()
    return kind


def replaced(mirror: Mirror, kind: TableKind, row: Row | None, of: Row = ()) -> None:
    """Change a row at the source, or delete it."""
    where = " and ".join(f"{name} = %s" for name in kind.table.key)
    mirror.run(f"delete from items where {where}", *(row or of)[: len(kind.table.key)])
    if row is not None:
        mirror.insert(row)


def with_faults(
    mirror: Mirror, kind: TableKind, rows: list[Row], chance: random.Random
) -> Expected:
    lies: dict[Any, Row | None] = {}
    expected: Expected = {}
    for at, row in enumerate(rows):
        key = kind.table.key_of(row)
        if at == 0 and kind.table.not_inserts is None:
            replaced(mirror, kind, None, row)
            lies[key], expected[told(row, kind)] = None, (DifferenceKind.SURPLUS, frozenset())
        elif at == 1 and kind.table.not_inserts is not None:
            lies[key], expected[told(row, kind)] = None, (DifferenceKind.MISSING, frozenset())
        else:
            lies[key], columns = damaged(kind, row, chance)
            seen = frozenset(columns & kind.compared)
            if seen:
                expected[told(row, kind)] = DifferenceKind.CHANGED, seen
    before = {key: row for key, row in mirror.rows().items() if key in lies}
    # By their texts, since 0.0 equals -0.0.
    lies = {
        key: lie for key, lie in lies.items() if lie is None or str(lie) != str(before.get(key))
    }
    mirror.feed(lies)
    return expected


def told(row: Row, kind: TableKind) -> str:
    columns = {column.name: column for column in kind.table.columns}
    key = zip(kind.table.key, row, strict=False)
    return str({name: str(columns[name].stored(value)) for name, value in key})


def found(report: TableReport) -> Expected:
    return {str(dict(one.key)): (one.kind, frozenset(one.columns)) for one in report.differences}


@pytest.mark.parametrize(
    "number",
    [
        *range(_KINDS_IN_THE_GATE),
        *(pytest.param(n, marks=pytest.mark.nightly) for n in range(_KINDS_IN_THE_GATE, _KINDS)),
    ],
)
def test_in_any_kind_of_table_exactly_the_wrong_rows_are_found(
    mirrored: Make, seed: int, number: int
) -> None:
    chance = random.Random(f"{seed} {number}")
    kind = random_kind(chance, shards=number % 3 == 0)
    mirrors = [mirrored(kind.table)]
    if number % 3 == 0:
        mirrors.append(mirrored(kind.table, mirrors[0]))
    changes = random_alterations(kind, chance, 3)
    for mirror in mirrors:
        expected, lived = live(mirror, kind, changes, chance)
        report = mirror.verify(VerificationRequest(quick=chance.random() < 0.3, repair=True))
        assert report.outcome is not ComparisonOutcome.NOT_COMPARED, (report.reason, lived)
        assert report.unsettled == 0, mirror.driver.table.parked
        assert found(report) == expected, lived
        assert report.outcome is (
            ComparisonOutcome.DIFFERENT if expected else ComparisonOutcome.EQUAL
        )
        assert lived.compared.isdisjoint(report.not_compared)
        is_repaired(mirror, lived, report, chance)


def is_repaired(
    mirror: Mirror, kind: TableKind, report: TableReport, chance: random.Random
) -> None:
    """What differed is equal, whatever is written meanwhile and sent again later; if rows can't be
    read whole, the report says why.
    """
    shape = kind.table.shape
    if shape is not None and shape.masks:
        assert report.repair is None
        assert "aren't compared" in report.not_repaired
        return
    assert report.repair is not None
    if kind.table.not_inserts is None:
        for number in chance.sample(range(_ROWS), 4):
            row = kind.row(number, chance)
            replaced(mirror, kind, row if chance.random() < 0.7 else None, row)
        if chance.random() < 0.5:
            mirror.feed()
    mirror.repair(report.repair)
    mirror.repair(report.repair)
    mirror.send_again()
    if chance.random() < 0.5:
        mirror.driver.compact()
    mirror.feed()
    left = mirror.verify()
    kept = [one for one in report.differences if one.kind is not DifferenceKind.MISSING]
    if kind.table.not_inserts is None:
        assert left.outcome is ComparisonOutcome.EQUAL, (found(left), kind)
    else:
        assert {str(dict(one.key)) for one in left.differences} == {
            str(dict(one.key)) for one in kept
        }


@pytest.mark.parametrize("made", [appended, with_masked_key])
def test_a_table_whose_rows_the_database_can_not_be_asked_for_is_refused_with_the_reason(
    mirrored: Make, seed: int, made: Callable[[TableKind], TableKind]
) -> None:
    chance = random.Random(seed)
    kind = made(random_kind(chance, shards=False))
    kind = replace(kind, table=replace(kind.table, policy=type(kind.table.policy)()))
    mirror = mirrored(kind.table)
    mirror.insert(*(kind.row(number, chance) for number in range(5)))
    mirror.feed()
    report = mirror.verify()
    assert report.outcome is ComparisonOutcome.NOT_COMPARED
    assert kind.refused in report.reason
