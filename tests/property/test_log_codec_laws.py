"""Laws of the log's codecs and of the manifest: they round-trip, and damage is named."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.errors import CorruptFileError, LakespliceError, UnsupportedError
from lakesplice.formats.log.actions import (
    Action,
    Add,
    DomainMetadata,
    Remove,
    TableMetadata,
    TableProtocol,
)
from lakesplice.formats.log.commit_file import decode_commit, encode_commit
from lakesplice.formats.log.schema_json import encode_schema
from lakesplice.formats.log.state import replay, start
from lakesplice.formats.manifests import (
    Pointer,
    decode_manifest,
    decode_pointer,
    encode_manifest,
    encode_pointer,
)
from lakesplice.model.manifest import Manifest
from lakesplice.model.offsets import Offset
from lakesplice.model.progress.met_gtids import GtidNumbers, GtidRange, GtidRanges
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from tests.support.log_strategies import (
    actions,
    counts,
    file_refs,
    manifests,
    names,
    schemas,
    texts,
)


@given(st.lists(actions, min_size=1, max_size=6))
def test_a_commit_file_gives_back_its_actions(written: list[Action]) -> None:
    assert list(decode_commit(encode_commit(written), "x")) == written


@given(st.lists(actions, min_size=1, max_size=3), st.data())
def test_unknown_actions_and_fields_are_passed_over(written: list[Action], data: Any) -> None:
    lines = encode_commit(written).splitlines()
    strange = [json.loads(line) for line in lines]
    for value in strange:
        (fields,) = value.values()
        fields["futureField"] = {"a": [1, None]}
    strange.insert(data.draw(st.integers(0, len(strange))), {"futureAction": {"x": 1}})
    encoded = "\n".join(json.dumps(value) for value in strange).encode()
    assert list(decode_commit(encoded, "x")) == written


@given(st.lists(actions, min_size=1, max_size=3), st.data())
def test_a_damaged_commit_file_is_read_as_actions_or_named(
    written: list[Action], data: Any
) -> None:
    _values_or_named(lambda damaged: decode_commit(damaged, "x"), encode_commit(written), data)


@given(st.binary(max_size=100))
def test_arbitrary_bytes_are_a_commit_or_a_corrupt_file(noise: bytes) -> None:
    with suppress(CorruptFileError):
        decode_commit(noise, "x")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"1",
        b'"add"',
        b'{"add":',
        b'{"add":[]}',
        b'{"add":{"path":1,"size":1}}',
        b'{"add":{"path":"x","size":"1"}}',
        b'{"add":{"path":"x","size":true}}',
        b'{"add":{"path":"x"}}',
        b'{"protocol":{"minReaderVersion":1}}',
        b'{"metaData":{"id":"x","schemaString":"{}","partitionColumns":[1]}}',
        b'{"domainMetadata":{"domain":"x"}}',
        b"[" * 100_000,
        b'{"add":{"path":"x","size":1' + b"0" * 5000 + b"}}",
        b"\xff\xfe",
    ],
)
def test_a_line_that_is_no_action_is_a_corrupt_file(line: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode_commit(line + b"\n", "x")


@pytest.mark.slow
@given(manifests)
def test_a_manifest_is_given_back(manifest: Manifest) -> None:
    assert decode_manifest(encode_manifest(manifest), "x") == manifest


def test_numbers_that_counted_as_met_before_they_had_an_order_still_count() -> None:
    manifest = Manifest(1, sources={"t": SourceState("t", "i", {0: PartitionState(Offset(1))})})
    value = json.loads(encode_manifest(manifest))
    partition = value["source"]["partitions"]["0"]

    def read() -> GtidRanges | None:
        former = decode_manifest(json.dumps(value).encode(), "x").sources["t"].partitions[0]
        return former.met_gtids

    partition |= {"recent_gtids": {"a": 8, "b": 2}, "recent_from": {"a": 3, "b": 3}}
    own = (GtidRange({"a": GtidNumbers(3, 9)}),)
    assert read() == GtidRanges(own, whole=False, since_missing={"a": 8, "b": 2})
    del partition["recent_from"]
    both = (GtidRange({"a": GtidNumbers(0, 9), "b": GtidNumbers(0, 3)}),)
    assert read() == GtidRanges(both, whole=False, since_missing={"a": 8, "b": 2})
    del partition["recent_gtids"]
    assert read() is None


@pytest.mark.slow
@given(manifests, st.data())
def test_a_damaged_manifest_is_read_as_one_or_named(manifest: Manifest, data: Any) -> None:
    _values_or_named(lambda damaged: decode_manifest(damaged, "x"), encode_manifest(manifest), data)


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_no_manifest(noise: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode_manifest(noise, "x")


def test_a_manifest_of_a_newer_format_is_refused_by_name() -> None:
    newer = encode_manifest(Manifest(1)).replace(b'"format":1', b'"format":99')
    with pytest.raises(UnsupportedError, match="newer Lakesplice"):
        decode_manifest(newer, "x")


_ID = Column(0, "id", "id", ColumnType(Primitive.LONG), "int64")
_N = Column(1, "n", "n", ColumnType(Primitive.INTEGER), "int32")
_PLAIN = TableSchema((_ID,), ("id",), (1,))


@pytest.mark.parametrize(
    ("schema", "format_"),
    [
        (_PLAIN, 1),
        (_PLAIN.with_columns([_N], ("id",)), 1),
        (_PLAIN.with_columns([replace(_N, fill="7")], ("id",)), 3),
        (_PLAIN.with_columns([], ("id",), [replace(_ID, type=ColumnType(Primitive.STRING))]), 3),
        (_PLAIN.with_columns([], ("id",), [replace(_ID, source_name="", hidden=True)]), 3),
        (replace(_PLAIN, left_out=frozenset(["n"])), 3),
        (replace(_PLAIN, adopted=True), 3),
        (replace(_PLAIN, partitioned_by=("id",)), 5),
        (replace(_PLAIN, bounded=frozenset([0])), 11),
    ],
)
def test_a_reader_that_would_misread_older_files_refuses_the_manifest(
    schema: TableSchema, format_: int
) -> None:
    assert json.loads(encode_manifest(Manifest(1, schema)))["format"] == format_


@given(st.builds(Pointer, counts, counts, file_refs))
def test_a_pointer_is_given_back(pointer: Pointer) -> None:
    assert decode_pointer(encode_pointer(pointer), "x") == pointer


@given(st.text(max_size=40))
def test_arbitrary_text_is_no_pointer(noise: str) -> None:
    with pytest.raises(CorruptFileError):
        decode_pointer(noise, "x")


@given(schemas())
def test_a_schema_in_the_log_has_each_column_with_its_names_and_types(schema: TableSchema) -> None:
    fields = json.loads(encode_schema(schema))["fields"][: len(schema.columns)]
    assert [(field["name"], field["type"]) for field in fields] == [
        (column.name, column.type.name) for column in schema.columns
    ]
    assert [[*field["metadata"].values()][:3] for field in fields] == [
        [column.id, column.source_name, column.source_type] for column in schema.columns
    ]


HEAD: tuple[Action, ...] = (TableProtocol(1, 2), TableMetadata("id", "{}"))


file_actions: st.SearchStrategy[Action] = st.one_of(
    st.builds(Add, names, counts, counts, st.booleans()),
    st.builds(Remove, names, counts, counts, st.booleans()),
    st.builds(DomainMetadata, names, texts, st.booleans()),
)


@given(st.lists(st.lists(file_actions, max_size=4), max_size=6), st.data())
def test_replay_in_any_pieces_is_replay_in_one(commits: list[list[Action]], data: Any) -> None:
    numbered = list(enumerate(commits, start=1))
    whole = replay(start(0, HEAD), numbered)
    cut = data.draw(st.integers(0, len(numbered)))
    assert replay(replay(start(0, HEAD), numbered[:cut]), numbered[cut:]) == whole


@given(st.lists(st.lists(file_actions, max_size=4), min_size=1, max_size=6))
def test_replay_leaves_what_was_added_last_and_not_removed_since(
    commits: list[list[Action]],
) -> None:
    expected: dict[str, Action] = {}
    for action in (action for commit in commits for action in commit):
        if isinstance(action, Add):
            expected[action.path] = action
        elif isinstance(action, Remove):
            expected.pop(action.path, None)
    assert replay(start(0, HEAD), enumerate(commits, start=1)).adds == expected


def test_a_gap_in_the_log_is_a_corrupt_file() -> None:
    with pytest.raises(CorruptFileError, match="gap"):
        replay(start(0, HEAD), [(1, ()), (3, ())])


@pytest.mark.parametrize("head", [HEAD[:1], HEAD[1:], ()])
def test_a_log_without_protocol_or_metadata_is_a_corrupt_file(head: tuple[Action, ...]) -> None:
    with pytest.raises(CorruptFileError):
        start(0, head)


def test_a_table_for_newer_readers_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError) as caught:
        start(0, [TableProtocol(3, 7, ("deletionVectors",), ()), HEAD[1]])
    assert caught.value.facts["reader_features"] == ("deletionVectors",)


def _values_or_named(decode: Any, encoded: bytes, data: Any) -> None:
    at = data.draw(st.integers(0, len(encoded) - 1))
    flipped = encoded[at] ^ data.draw(st.integers(1, 255))
    for damaged in (encoded[:at], encoded[:at] + bytes([flipped]) + encoded[at + 1 :]):
        with suppress(LakespliceError):
            decode(damaged)
