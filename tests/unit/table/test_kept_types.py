"""Columns that keep their type: values that fit are stored, others become dead letters, which can
be replayed.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.model.parking import ParkCode
from lakesplice.model.schema import Column
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.schema.ignored_type_changes import fitting
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.dead_letters import DeadLetterSelection, dead_letters_of
from lakesplice.table.ingest.dead_letter_replay import DeadLetterCounts, OpenDeadLetters
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from tests.support.altered import Life, event

KEEPING = SchemaPolicy(alter_column_type=Behaviour.IGNORE)
INT = {"id": "int32", "n": "int32", "name": "string"}
LONG = {"id": "int32", "n": "int64", "name": "string"}
TEXT = {"id": "int32", "n": "string", "name": "string"}
BEYOND = 1 << 40


@pytest.fixture
def lake(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path / "lake"))


def row(id_: int, n: Any, name: str) -> dict[str, Any]:
    return {"id": id_, "n": n, "name": name}


def letters(life: Life) -> list[tuple[str, str]]:
    found = dead_letters_of(life.store, life.driver.table.manifest.dead_letters)
    return [(letter.reason, letter.detail) for letter in found]


@pytest.mark.slow
def test_a_value_that_fits_is_taken_and_another_becomes_a_dead_letter(lake: LocalStore) -> None:
    life = Life(lake, None, KEEPING)
    life.take(event(INT, 1, row(1, 1, "x")), event(INT, 2, row(2, 2, "x")))
    life.take(
        event(LONG, 10, row(1, 7, "y"), row(1, 1, "x")),
        event(LONG, 11, row(2, BEYOND, "y"), row(2, 2, "x")),
        event(LONG, 12, row(3, None, "new")),
    )
    assert life.parked == ""
    assert life.rows() == [row(1, 7, "y"), row(2, 2, "x"), row(3, None, "new")]
    assert life.driver.table.schema.by_source["n"].type == ColumnType(Primitive.INTEGER)
    [(reason, detail)] = letters(life)
    assert reason == "out-of-range"
    assert "column='n' keeps its type integer" in detail


@pytest.mark.slow
def test_a_row_that_fits_again_is_whole_again_and_one_that_is_deleted_is_gone(
    lake: LocalStore,
) -> None:
    life = Life(lake, None, KEEPING)
    life.take(event(INT, 1, row(1, 1, "x")), event(INT, 2, row(2, 2, "x")))
    life.take(
        event(LONG, 10, row(1, BEYOND, "lost"), row(1, 1, "x")),
        event(LONG, 11, row(2, BEYOND, "lost"), row(2, 2, "x")),
        event(LONG, 12, row(1, 8, "lost"), row(1, BEYOND, "lost")),
        event(LONG, 13, None, row(2, BEYOND, "lost")),
    )
    assert life.rows() == [row(1, 8, "lost")]
    life.driver.compact()
    assert life.rows() == [row(1, 8, "lost")]


@pytest.mark.slow
def test_dead_letters_are_applied_once_the_table_follows_the_change(lake: LocalStore) -> None:
    life = Life(lake, None, KEEPING)
    life.take(event(INT, 1, row(1, 1, "x")))
    life.take(event(LONG, 10, row(1, BEYOND, "y"), row(1, 1, "x")))
    table = life.driver.table
    assert table.snapshot is not None
    box = OpenDeadLetters(
        life.store, table.snapshot, table.commit, table.generation, FixedClock(), SeededEntropy(2)
    )
    assert box.replay(
        DeadLetterSelection(), RecordReading(table=life.driver.name, policy=KEEPING)
    ) == (DeadLetterCounts(0, 1))
    assert box.replay(
        DeadLetterSelection(), RecordReading(table=life.driver.name)
    ) == DeadLetterCounts(1)
    assert life.rows() == [row(1, BEYOND, "y")]


def test_texts_that_are_whole_numbers_are_taken_as_such(lake: LocalStore) -> None:
    life = Life(lake, None, KEEPING)
    life.take(event(INT, 1, row(1, 1, "x")))
    texts = enumerate(("12", "-3", "012", "a"))
    life.take(*(event(TEXT, 10 + n, row(2 + n, text, "x")) for n, text in texts))
    assert life.rows() == [row(1, 1, "x"), row(2, 12, "x"), row(3, -3, "x")]
    assert len(letters(life)) == 2


def test_if_the_source_changed_values_the_table_parks(lake: LocalStore) -> None:
    life = Life(lake, None, KEEPING)
    life.take(event(TEXT, 1, row(1, "1", "x")))
    life.topic.append(0, [event(INT, 10, row(2, 2, "x"))])
    life.driver.batch()
    assert life.parked.startswith(ParkCode.SCHEMA_CHANGE)


DECIMAL = ColumnType(Primitive.DECIMAL, 6, 2)


@pytest.mark.parametrize(
    ("values", "kind", "held"),
    [
        (
            pa.array([1, -129, 127, None], pa.int64()),
            ColumnType(Primitive.BYTE),
            [1, None, 127, None],
        ),
        (
            pa.array([1.0, 1.5, float("inf"), 3e12]),
            ColumnType(Primitive.INTEGER),
            [1, None, None, None],
        ),
        (pa.array([0.5, 0.1]), ColumnType(Primitive.FLOAT), [0.5, None]),
        (
            pa.array(list(map(Decimal, ("1.23", "1.2345", "99999"))), pa.decimal128(12, 4)),
            DECIMAL,
            [Decimal("1.23"), None, None],
        ),
        (
            pa.array([Decimal(1), Decimal(1 << 40), None], pa.decimal128(20, 0)),
            ColumnType(Primitive.INTEGER),
            [1, None, None],
        ),
        (
            pa.array([Decimal("7.00"), Decimal("7.10")], pa.decimal128(21, 2)),
            ColumnType(Primitive.LONG),
            [7, None],
        ),
        (
            pa.array(["9223372036854775807", "9223372036854775808"]),
            ColumnType(Primitive.LONG),
            [(1 << 63) - 1, None],
        ),
        (
            pa.array([0, 86_400_000_000, 1], pa.timestamp("us", "UTC")),
            ColumnType(Primitive.DATE),
            ["1970-01-01", "1970-01-02", None],
        ),
    ],
    ids=["whole", "fractions", "float", "digits", "decimal", "scale", "text", "date"],
)  # fmt: skip
def test_a_value_fits_if_it_comes_back_the_same(
    values: pa.Array, kind: ColumnType, held: list[Any]
) -> None:
    found, fits = fitting(values, Column(1, "n", "n", kind, "x"))
    shown = [
        str(v) if kind.kind is Primitive.DATE and v is not None else v for v in found.to_pylist()
    ]
    assert (shown, found.type) == (held, kind.arrow)
    assert fits.tolist() == [
        v is not None or not s.is_valid for v, s in zip(held, values, strict=True)
    ]
