"""Tables with columns that are left out or masked: their values are nowhere on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from lakesplice.errors import SourceUnavailable
from lakesplice.formats.events import SchemaText
from lakesplice.model.parking import ParkCode
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.planning.shape.masks import masks_of
from lakesplice.planning.shape.shaping import Shape
from lakesplice.spark.jobs.batch_plan import TaskError
from lakesplice.table.files.dead_letters import read_dead_letters
from lakesplice.testing.shop import Event
from lakesplice.testing.shop.columns import integer, varchar
from tests.support.shaped import Life
from tests.support.steps import redirect

SECRETS = ("Annabella", "annabella@example.org")
MASKED = Shape(
    exclude=("name",), masks=masks_of({"email": "hash", "age": "redact"}), secret="pepper"
)


def lived(root: Path, shape: Shape) -> Life:
    """Inserted, changed so that a delta waits, and a record that can't be decoded."""
    life = Life(root, shape)
    life.database.insert("people", [(1, SECRETS[0], SECRETS[1], 30), (2, "B", None, None)])
    life.take()
    life.database.update("people", [(1,)], lambda old: (old[0], old[1], old[2], 31))
    broken = (f'{{"payload": "{SECRETS[0]}"').encode()
    headers = (("email", SECRETS[1].encode()),)
    life.take(Event(life.topic.name, SECRETS[1].encode(), broken, headers, 0))
    return life


@pytest.mark.slow
def test_masked_values_are_nowhere_on_disk_nor_in_dead_letters(tmp_path: Path) -> None:
    life = lived(tmp_path, MASKED)
    life.driver.compact()
    found = life.on_disk()
    assert not [secret for secret in SECRETS if secret.encode() in found]
    first, second = life.rows
    assert set(first) == {"id", "email", "age"}
    assert len(first["email"]) == 32
    assert (second["email"], first["age"]) == (None, None)
    (ref,) = life.driver.table.manifest.dead_letters
    (letter,) = read_dead_letters(life.driver.table.store, ref).to_pylist()
    assert (letter["key"], letter["value"]) == (None, None)
    assert letter["headers"] == "[]"
    assert letter["reason"] == "not-json"
    assert "has masks" in letter["detail"]


def test_dead_letters_keep_their_bytes_where_that_is_said(tmp_path: Path) -> None:
    raw = Shape(MASKED.include, MASKED.exclude, MASKED.masks, MASKED.secret, raw_dead_letters=True)
    life = lived(tmp_path, raw)
    (ref,) = life.driver.table.manifest.dead_letters
    (letter,) = read_dead_letters(life.driver.table.store, ref).to_pylist()
    assert SECRETS[0].encode() in letter["value"]
    assert "email" in letter["headers"]


class _Unreachable:
    """A registry that answers nobody."""

    def schemas(self, numbers: Iterable[int]) -> Mapping[int, SchemaText]:
        raise SourceUnavailable("the schema registry can't be reached", numbers=sorted(numbers))


def test_an_unreachable_registry_is_reported_for_a_masked_table_too(tmp_path: Path) -> None:
    life = Life(tmp_path, MASKED)
    life.drive(MASKED, schemas=_Unreachable())
    avro = b"\0\0\0\0\7" + SECRETS[0].encode()
    life.topic.append(0, [Event(life.topic.name, b"k", avro, (), 0)])
    error = life.driver.attempt()
    assert isinstance(error, TaskError)
    assert (error.kind, error.trace) == ("SourceUnavailable", "")
    assert "can't be reached" in error.message


@pytest.mark.slow
def test_a_row_that_changes_only_in_ignored_columns_keeps_its_values(tmp_path: Path) -> None:
    life = lived(tmp_path, MASKED)
    before = life.rows
    life.database.update("people", [(1,)], lambda old: (old[0], "Other", old[2], old[3]))
    life.take()
    life.driver.compact()
    assert life.rows == before


@pytest.mark.slow
def test_a_column_added_later_is_null_in_older_rows_despite_its_default(
    tmp_path: Path,
) -> None:
    life = lived(tmp_path, MASKED)
    life.drive(Shape((), (), MASKED.masks, MASKED.secret))
    life.database.insert("people", [(3, "Cy", "c@x", 1)])
    life.take()
    assert [row["name"] for row in life.rows] == [None, None, "Cy"]


@pytest.mark.slow
def test_an_ignored_column_added_later_is_not_filled_with_its_default(tmp_path: Path) -> None:
    ignoring = SchemaPolicy(add_column=Behaviour.IGNORE)
    life = Life(tmp_path, None, ignoring)
    life.database.insert("people", [(1, "A", "a@x", 1)])
    life.take()
    life.database.add_column("people", integer("points", default=5))
    life.database.insert("people", [(2, "B", "b@x", 1, 9)])
    life.take()
    assert set(life.rows[0]) == {"id", "name", "email", "age"}
    life.drive(None)
    life.database.insert("people", [(3, "C", "c@x", 1, 7)])
    life.take()
    assert [row["points"] for row in life.rows] == [None, None, 7]


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape", [None, Shape(MASKED.include, MASKED.exclude, MASKED.masks, "another secret")]
)
def test_a_table_whose_masks_change_parks(tmp_path: Path, shape: Shape | None) -> None:
    life = lived(tmp_path, MASKED)
    life.drive(shape)
    life.database.insert("people", [(3, "Cy", "c@x", 1)])
    life.take()
    parked = life.driver.table.parked
    assert parked is not None
    assert parked.code is ParkCode.SCHEMA_CHANGE
    assert "masked:hash" in parked.detail


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", [Behaviour.TRY_EVOLVE, Behaviour.LENIENT, Behaviour.IGNORE])
def test_a_masked_column_does_not_reappear_unmasked_under_another_name(
    tmp_path: Path, behaviour: Behaviour
) -> None:
    lenient = SchemaPolicy(rename_column=behaviour, drop_column=Behaviour.LENIENT)
    life = Life(tmp_path, MASKED, lenient)
    life.database.insert("people", [(1, "A", "a@x", 1)])
    life.take()
    life.database.drop_column("people", "email")
    life.database.add_column("people", varchar("mail"))
    life.database.insert("people", [(2, "B", 1, "secret@x")])
    life.take()
    parked = life.driver.table.parked
    if behaviour is Behaviour.IGNORE:
        assert parked is None, "somebody said that it may be shown"
        return
    assert parked is not None
    assert "'email', which is masked" in parked.detail
    assert b"secret@x" not in life.on_disk()
    both = Shape((), ("name",), masks_of({"*mail": "hash", "age": "redact"}), secret="pepper")
    redirect(life.driver, parked=None)
    life.drive(both, lenient)
    life.take()
    assert life.driver.table.parked is None
    assert [len(row["mail"] or "") for row in life.rows] == [0, 32]
