"""Whatever program wrote a file, a table that is filled from it has what streaming gives the same
values, or the file is refused, and the message names the column.

Single values are in `tests/unit/planning/test_file_values.py`; here types, forms and values are
drawn together. The records pass the decoder and the intake, the files `RowFiles` and the same
intake; rows and row digests are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from lakesplice.apps.bootstrap.row_files import RowFiles, file_parts
from lakesplice.errors import UsageError
from lakesplice.formats.events import declare
from lakesplice.formats.events.blocks.type_mappings import mapped_schema
from lakesplice.model.choices import FormatName, TypeMapping
from lakesplice.model.names import ROW_DIGEST
from lakesplice.model.offsets import Offset
from lakesplice.model.position import Position
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.model.schema import TableSchema
from lakesplice.model.source_schema import SourceSchema
from lakesplice.planning.intake.known_topic import KnownTopic
from lakesplice.planning.intake.line import IntakeLine, RecordReading
from lakesplice.planning.intake.read_rows import ReadRows, take_rows
from lakesplice.planning.source_rows.file_values import with_stated_types
from lakesplice.storage.local import LocalStore
from tests.conformance.test_types import _GEOMETRY, _ID
from tests.support.debezium import (
    TABLE,
    Record,
    batch,
    compact,
    decode_all,
    envelope_schema,
    key_schema,
    payload,
    with_schema,
)
from tests.support.drawing import examples
from tests.support.foreign_files import CSV_FORMS, FORMS, INT96, Form
from tests.support.mysql_values import CANNOT_BE_SENT, KINDS, Kind
from tests.support.sent_types import DEAD
from tests.support.shadows import READ_MS
from tests.support.simulated import folder
from tests.support.types import TYPES

TOPIC = "s.shop.items"


def test_every_type_of_the_document_is_drawn() -> None:
    assert list(KINDS) == [type_.name for type_ in TYPES]


@dataclass(frozen=True)
class DrawnColumn:
    """A column of the table and of the file; `described` is its type in Connect's schema, or its
    declaration.
    """

    type_name: str
    described: Any
    form: Form
    values: tuple[Any, ...]

    @property
    def kind(self) -> Kind:
        return KINDS[self.type_name]

    @property
    def sent(self) -> list[Any]:
        of, described = self.kind.sent, self.described
        return [None if v is None else of(v, described) for v in self.values]


@dataclass(frozen=True)
class Scene:
    columns: Mapping[str, DrawnColumn]
    is_declared: bool
    mappings: tuple[TypeMapping, ...]

    @property
    def reading(self) -> RecordReading:
        declared = {name: column.described for name, column in self.columns.items()}
        return RecordReading(
            table=TABLE,
            declared=declare({"id": "bigint", **declared}) if self.is_declared else None,
            mappings=self.mappings,
        )

    def only(self, names: Sequence[str]) -> Scene:
        return replace(self, columns={name: self.columns[name] for name in names})

    @property
    def records(self) -> list[Record]:
        sent = {name: column.sent for name, column in self.columns.items()}
        count = len(next(iter(self.columns.values())).values)
        images = [{"id": at, **{n: of[at] for n, of in sent.items()}} for at in range(count)]
        events = [payload("c", None, image, pos=100 + at) for at, image in enumerate(images)]
        if self.is_declared:
            return [(compact({"id": at}), compact(one)) for at, one in enumerate(events)]
        fields = [
            {**(_GEOMETRY if of.described == "Geometry" else of.described), "optional": True,
             "field": name}
            for name, of in self.columns.items()
        ]  # fmt: skip
        schema = envelope_schema([_ID, *fields])
        return [
            (compact(with_schema({"id": at}, key_schema([_ID]))), compact(with_schema(one, schema)))
            for at, one in enumerate(events)
        ]

    @property
    def table(self) -> pa.Table:
        arrays = {name: of.form.column(of.values) for name, of in self.columns.items()}
        return pa.table({"id": pa.array(range(len(next(iter(arrays.values()))))), **arrays})


def _descriptions(name: str, *, is_declared: bool) -> list[Any]:
    (type_,) = (one for one in TYPES if one.name == name)
    sent = type_.declared if is_declared else type_.connect
    found = {str(one.type): one.type for one in sent if one.outcome is not DEAD}
    # `TYPES` has a DECIMAL(65,30) with other scales, too.
    return [one for one in found.values() if name != "DECIMAL(65,30)" or "'0'" not in str(one)]


@st.composite
def scenes(
    draw: st.DrawFn, families: Sequence[str], forms: Mapping[str, tuple[Form, ...]]
) -> Scene:
    """Columns of a type of each family, one for each form in which a file may bring its values."""
    is_declared, count = draw(st.booleans()), draw(st.integers(1, 5))
    columns: dict[str, DrawnColumn] = {}
    for family in families:
        kinds = [name for name, of in KINDS.items() if of.family == family.split(" as ")[0]]
        name = draw(st.sampled_from(kinds))
        described = draw(st.sampled_from(_descriptions(name, is_declared=is_declared)))
        kind = KINDS[name]
        values = kind.sound if draw(st.integers(0, 3)) else kind.sound | kind.wrong
        cells = st.one_of(values, values, values, st.none())
        found = draw(st.lists(cells, min_size=count, max_size=count))
        for form in forms[family]:
            if form.known_by(described):
                held = tuple(value if form.holds(value) else None for value in found)
                columns[f"c{len(columns)}"] = DrawnColumn(name, described, form, held)
    mapping = draw(st.sampled_from([(), (), *((one,) for one in TypeMapping)]))
    return Scene(columns, is_declared, mapping)


def streamed(scene: Scene) -> tuple[TableSchema, list[dict[str, Any]]]:
    """The table's schema and rows by the stream."""
    records, line = batch(scene.records), line_of(scene, TableSchema())
    line.take(records)
    schema = line.first_schema
    assert schema is not None
    taken = line_of(scene, schema).take(records)
    assert not taken.dead_letters
    return schema, rows_of(schema, taken.changes)


def line_of(scene: Scene, schema: TableSchema) -> IntakeLine:
    state, known = PartitionState(Offset(0)), KnownTopic()
    return IntakeLine(scene.reading, TOPIC, 0, schema=schema, state=state, known=known)


def rows_of(schema: TableSchema, changes: Sequence[pa.Table]) -> list[dict[str, Any]]:
    names = [*schema.names, ROW_DIGEST]
    rows = [row for table in changes for row in table.select(names).to_pylist()]
    return sorted(rows, key=lambda row: str(row["id"]))


def sound_columns(scene: Scene) -> set[str]:
    """The columns of which records can have all values; columns of a type are tried together."""
    found, alike = set[str](), dict[str, list[str]]()
    for name, column in scene.columns.items():
        alike.setdefault(column.type_name, []).append(name)
    for names in alike.values():
        values = dict.fromkeys(value for name in names for value in scene.columns[name].values)
        every = replace(scene.columns[names[0]], values=tuple(values))
        wrong = {
            value for value, sent in zip(values, every.sent, strict=True) if sent is CANNOT_BE_SENT
        }
        sent = tuple(value for value in values if value not in wrong)
        if sent:
            alone = replace(scene, columns={names[0]: replace(every, values=sent)})
            dead = decode_all(alone.records, alone.reading.context(None, None)).dead
            wrong |= {sent[row] for row in dead.rows.tolist()}
        found |= {name for name in names if wrong.isdisjoint(scene.columns[name].values)}
    return found


def schema_of(scene: Scene) -> SourceSchema:
    """The columns as a record without values shows them, before mappings."""
    nulls = {name: replace(of, values=(None,)) for name, of in scene.columns.items()}
    plain = replace(scene, columns=nulls, mappings=())
    (block,) = decode_all(plain.records, plain.reading.context(None, None)).blocks
    return block.schema


def require_law(scene: Scene, store: LocalStore, *, may_doubt: bool = False) -> None:
    """Read the file's columns but those that it is refused for, and compare the rest."""
    schema, refused = schema_of(scene), dict[str, UsageError]()
    stated = with_stated_types(schema, scene.reading.declared or {})
    sound = sound_columns(scene)
    try:
        (part,) = file_parts(store, "*")
    except UsageError as error:
        if not may_doubt:
            raise
        event(error.message[:60])
        return
    images = None
    while images is None:
        fields = tuple(field for field in stated.fields if field.name not in refused)
        now, excluded = replace(stated, fields=fields), frozenset(refused)
        try:
            images = RowFiles(store, now, excluded, scene.mappings).rows(part)
        except UsageError as error:
            why = error
        if images is None:
            assert "; " in why.message
            refused[str(why.facts["column"])] = why
    for name, why in refused.items():
        event(f"refused: {scene.columns[name].kind.family}")
        assert name not in sound or not scene.columns[name].form.taken, why
    left = [field for field in schema.fields if field.name not in refused]
    taken = [field.name for field in left[1:]]
    assert sound.issuperset(taken)
    for name in taken:
        event(f"taken: {scene.columns[name].kind.family}")
    if taken:
        read = mapped_schema(replace(schema, fields=tuple(left)), scene.mappings)
        require_equal(scene.only(taken), read, images)


def require_equal(scene: Scene, schema: SourceSchema, images: pa.Table) -> None:
    table_schema, expected = streamed(scene)
    read = ReadRows(schema, images, Position(3, 1), READ_MS)
    found = take_rows(
        [read], scene.reading, TOPIC, schema=table_schema, known=KnownTopic(FormatName.DEBEZIUM)
    )
    assert not found.refused
    assert not found.new_schemas
    assert rows_of(table_schema, found.changes) == expected


@pytest.mark.parametrize("family", FORMS)
@settings(max_examples=examples(25))
@given(data=st.data())
def test_a_parquet_file_is_taken_as_the_stream_or_refused(family: str, data: st.DataObject) -> None:
    scene = data.draw(scenes([family], FORMS))
    with_schema = data.draw(st.booleans())
    with folder() as path:
        pq.write_table(
            scene.table,
            path / "a.parquet",
            store_schema=with_schema,
            use_deprecated_int96_timestamps=family == INT96,
        )
        require_law(scene, LocalStore(path))


# NULL, and whether quotes are around all values, where they are needed, or not around empty texts.
STYLES = (
    *((null, quotes) for null in ("", "\\N", "NULL") for quotes in ("all", "needed")),
    ("\\N", "few"),
)
FAMILIES = st.lists(
    st.sampled_from([family for family in CSV_FORMS if family != "text"]),
    min_size=2,
    max_size=4,
    unique=True,
)


@settings(max_examples=examples(100))
@given(
    FAMILIES.flatmap(lambda families: scenes(["text", *families], CSV_FORMS)),
    st.sampled_from(STYLES),
)
def test_a_csv_file_is_taken_as_the_stream_or_refused(scene: Scene, style: tuple[str, str]) -> None:
    null, quotes = style
    cells = [list(map(text, row.values())) for row in scene.table.to_pylist()]
    if quotes == "few" and all(None not in row for row in cells):
        return  # then nothing shows that values that are nothing are texts

    def cell(value: str | None) -> str:
        if value is None or (quotes == "few" and not value):
            return null if value is None else value
        if quotes == "all" or value in ("", null, "\\N") or set(value) & set('",\r\n'):
            return '"' + value.replace('"', '""') + '"'
        return value

    lines = [scene.table.column_names, *(map(cell, row) for row in cells)]
    content = "".join(",".join(line) + "\n" for line in lines)
    with folder() as path:
        (path / "a.csv").write_bytes(content.encode())
        require_law(scene, LocalStore(path), may_doubt="\\" in content or "NULL" in content)


def text(value: Any) -> str | None:
    return None if value is None else str(value)
