"""Canal's flat messages and TiCDC's, as their documents describe them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.formats.events import Decoded
from lakesplice.model.change import Op
from lakesplice.model.choices import FormatName
from lakesplice.model.position import Ordering, Position
from tests.support.canal_messages import (
    COMMIT_TS,
    TYPES,
    WRITERS,
    Json,
    decode,
    message,
    row,
    ticdc,
)
from tests.support.debezium import Record, dead, images, type_name


def positions(decoded: Decoded) -> list[Position]:
    return [
        Position(int(file), int(offset))
        for block in decoded.blocks
        for file, offset in zip(block.position_file, block.position_offset, strict=True)
    ]


@WRITERS
def test_a_row_is_read_from_texts_by_the_types_that_the_message_names(write: Any) -> None:
    decoded = decode(
        write("INSERT", [row(1)]),
        write("UPDATE", [row(1, name=None)], [{"name": "was"}]),
        write("DELETE", [row(1)]),
    )
    assert decoded.format is FormatName.CANAL
    (block,) = decoded.blocks
    assert block.op.tolist() == [Op.CREATE, Op.UPDATE, Op.DELETE]
    assert block.schema.key == ("id",)
    after = {"id": 1, "name": "item 1", "price": Decimal("1.50")}
    assert images(decoded) == {
        0: (None, after), 1: (None, {**after, "name": None}), 2: (after, None),
    }  # fmt: skip
    assert block.source_ts[0].as_py() == datetime(2020, 5, 13, 12, 39, 20, tzinfo=UTC)


def test_canals_order_is_that_of_messages_and_of_rows_in_them() -> None:
    decoded = decode(message("INSERT", [row(1), row(2)]), message("DELETE", [row(1)]))
    (block,) = decoded.blocks
    assert block.ordering is Ordering.KAFKA
    assert block.rows.tolist() == [0, 0, 1]
    assert positions(decoded) == [
        Position.of(0, 0, 0, 0, 1),
        Position.of(0, 0, 0, 1, 1),
        Position.of(0, 0, 1, 0, 0),
    ]


def test_ticdcs_order_is_that_of_commits() -> None:
    decoded = decode(ticdc("INSERT", [row(1)]), ticdc("DELETE", [row(1)]))
    (block,) = decoded.blocks
    assert block.ordering is Ordering.TIDB
    assert positions(decoded) == [Position(0, COMMIT_TS << 1 | 1), Position(0, COMMIT_TS << 1)]


@WRITERS
def test_an_update_of_the_key_is_a_delete_and_a_create(write: Any) -> None:
    decoded = decode(
        write("INSERT", [row(7)]),
        write("UPDATE", [row(2)], [{"id": "1"}]),
        write("UPDATE", [row(3)], [{"id": "3", "name": None}]),
    )
    (block,) = decoded.blocks
    assert block.op.tolist() == [Op.CREATE, Op.DELETE, Op.CREATE, Op.UPDATE]
    assert block.before["id"].to_pylist()[1] == 1
    assert block.after["id"].to_pylist()[2] == 2
    assert block.before_present.tolist() == [False, True, False, False]
    assert block.after_present.tolist() == [True, False, True, True]


def test_statements_that_change_no_row_are_skipped_and_a_truncation_is_a_fence() -> None:
    ddl = {"mysqlType": None, "sqlType": None, "pkNames": None, "isDdl": True}
    watermark = {"type": "TIDB_WATERMARK", "isDdl": False, "database": "", "table": "",
                 "_tidb": {"watermarkTs": COMMIT_TS}}  # fmt: skip
    records = [
        message("ALTER", None, **ddl),
        message("TIDB_WATERMARK", None, **{**ddl, **watermark}),
        message("INSERT", [row(1)]),
    ]
    decoded = decode(*records, message("TRUNCATE", None, **ddl), message("INSERT", [row(2)]))
    assert decoded.ignored == {"schema-change": 1, "watermark": 1, "truncate": 1}
    assert sorted(images(decoded)) == [2, 4]
    assert decoded.fences.rows.tolist() == [3]
    assert decoded.fences.dropped.tolist() == [False]
    assert decoded.fences.source_ts.null_count == 0


def test_an_erase_is_a_drop_and_no_truncate() -> None:
    ddl = {"isDdl": True, "pkNames": None, "mysqlType": None, "sqlType": None}
    decoded = decode(message("INSERT", [row(1)]), message("ERASE", None, **ddl))
    assert decoded.ignored == {"drop": 1}
    assert decoded.fences.dropped.tolist() == [True]


MALFORMED: dict[str, tuple[Record, str]] = {
    "another table": (message("INSERT", [row(2)], table="other"), "wrong-table"),
    "an unknown type": (message("UPSERT", [row(2)]), "unknown-op"),
    "no row": (message("INSERT", []), "missing-image"),
    "a null row": (message("INSERT", [row(2), None]), "missing-image"),
    "an update with a null old": (message("UPDATE", [row(2)], [None]), "missing-image"),
    "an update with too few old": (message("UPDATE", [row(2), row(4)], [{}]), "missing-image"),
    "an insert with old": (message("INSERT", [row(2)], [{}]), "missing-image"),
    "a null key": (message("INSERT", [row(2), row(4, id=None)]), "missing-key"),
    "a time beyond years": (message("INSERT", [row(2)], es=1 << 60), "out-of-range"),
    "no types": (message("INSERT", [row(2)], mysqlType=None), "wrong-type"),
    "a key that the row hasn't": (message("INSERT", [row(2)], pkNames=["x"]), "missing-key"),
    "a negative commit": (message("INSERT", [row(2)], _tidb={"commitTs": -1}), "out-of-range"),
    "no commit": (message("INSERT", [row(2)], _tidb={"commitTs": None}), "missing-position"),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_message_costs_only_itself(kind: str) -> None:
    record, reason = MALFORMED[kind]
    decoded = decode(message("INSERT", [row(1)]), record, message("INSERT", [row(3)]))
    assert dead(decoded) == {1: reason}, decoded.dead.detail
    assert sorted(images(decoded)) == [0, 2]


def test_another_type_or_key_is_another_schema() -> None:
    decoded = decode(
        message("INSERT", [row(1)]),
        message("INSERT", [row(2)], types={"price": "decimal(10,2)"}),
        message("INSERT", [row(3)], pkNames=["id", "name"]),
        message("INSERT", [row(4)], pkNames=None),
        message("INSERT", [row(5)]),
    )
    assert dead(decoded) == {}
    schemas = {
        (block.schema.key, type_name(block, 2)): block.rows.tolist() for block in decoded.blocks
    }
    assert schemas == {
        (("id",), "decimal(8,2)"): [0, 4],
        (("id",), "decimal(10,2)"): [1],
        (("id", "name"), "decimal(8,2)"): [2],
        ((), "decimal(8,2)"): [3],
    }


_texts = (
    st.none()
    | st.text(st.characters(codec="utf-8"), max_size=6)
    | st.sampled_from(['"old":[{', "}],", '}],"', "}]}", '"data":[{', '"name":null', ":null", "\n"])
)
_columns = st.fixed_dictionaries({}, optional={"name": _texts, "price": st.none()})


@pytest.mark.slow
@WRITERS
@given(st.lists(st.tuples(_columns, st.none() | _columns), min_size=1, max_size=6))
def test_an_absent_column_is_never_taken_for_a_null(
    write: Any, changes: list[tuple[Json, Json | None]]
) -> None:
    records, whole = [], []
    for at, (data, old) in enumerate(changes):
        image = {"id": str(at), **data}
        kind = "INSERT" if old is None else "UPDATE"
        records.append(write(kind, [image], None if old is None else [old]))
        whole.append(image.keys() == TYPES.keys())
    decoded = decode(*records)
    assert [at for at in range(len(records)) if at not in dead(decoded)] == [
        at for at, is_whole in enumerate(whole) if is_whole
    ]
    for at, (_, after) in images(decoded).items():
        assert after is not None
        assert after["name"] == changes[at][0]["name"]


UNKNOWN: list[Json] = [
    {"gtid": "5c5e:1"}, {"gtid": None}, {"clusterId": 7, "weight": 1.5, "fast": True},
    {"labels": {"data": [{"id": None}], "tier": None}}, {"tags": ["a", None]},
]  # fmt: skip


@WRITERS
@pytest.mark.parametrize("more", UNKNOWN, ids=repr)
def test_unknown_members_are_skipped(write: Any, more: Json) -> None:
    """Canal 1.1.7 added `gtid`; others will come."""
    decoded = decode(
        write("INSERT", [row(1)]),
        write("UPDATE", [row(1, name=None)], [{"name": "item 1"}], **more),
        write("INSERT", [row(2)], **more),
    )
    assert dead(decoded) == {}
    found = [after for _, after in images(decoded).values()]
    assert [after and after["name"] for after in found] == ["item 1", None, "item 2"]


@WRITERS
def test_a_column_that_mysqltype_lacks_is_not_passed_over(write: Any) -> None:
    decoded = decode(write("INSERT", [row(1, surprise="x")]))
    assert len(dead(decoded)) == 1


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"onlyHandleKey": True}, "onlyHandleKey"),
        ({"claimCheckLocation": "s3://b/c"}, "claimCheck"),
    ],
)
def test_a_row_that_ticdc_left_out_of_a_large_message_is_named(said: Json, reason: str) -> None:
    extension = {"commitTs": COMMIT_TS, **said}
    decoded = decode(ticdc("INSERT", [{"id": "1"}], _tidb=extension), ticdc("INSERT", [row(2)]))
    assert dead(decoded) == {0: "missing-image"}
    assert reason in decoded.dead.detail[0]
    assert "max-message-bytes" in decoded.dead.detail[0]
    assert images(decoded).keys() == {1}


def test_an_update_without_old_leaves_the_key_as_it_is() -> None:
    decoded = decode(
        message("UPDATE", [row(1), row(2)]),
        message("UPDATE", [row(4)], [{"id": "3"}]),
        message("INSERT", [row(5)]),
    )
    assert dead(decoded) == {}
    (block,) = decoded.blocks
    assert block.op.tolist() == [Op.UPDATE, Op.UPDATE, Op.DELETE, Op.CREATE, Op.CREATE]
    assert block.after["id"].to_pylist() == [1, 2, 4, 4, 5]


def test_the_rows_of_an_initial_load_are_read() -> None:
    decoded = decode(message("INIT", [row(1), row(2)]), message("INSERT", [row(3)]))
    (block,) = decoded.blocks
    assert block.op.tolist() == [Op.READ, Op.READ, Op.CREATE]
    assert block.snapshot is None


def test_a_delete_with_only_the_key_leaves_other_columns_unknown() -> None:
    types = {"mysqlType": {"id": "int(11)"}, "sqlType": {"id": 4}}
    decoded = decode(
        ticdc("INSERT", [row(1)]),
        ticdc("DELETE", [{"id": "1"}], **types),
        ticdc("INSERT", [row(2)]),
        ticdc("DELETE", [{"id": "2"}], **types),
    )
    assert dead(decoded) == {}
    alone = {block.schema.key_alone: block for block in decoded.blocks}
    assert alone[True].before.to_pylist() == [{"id": 1}, {"id": 2}]
    assert alone[False].rows.tolist() == [0, 2]


def test_a_row_of_nothing_but_its_key_is_no_delete_of_the_key_alone() -> None:
    types = {"mysqlType": {"id": "int(11)"}, "sqlType": {"id": 4}}
    decoded = decode(ticdc("INSERT", [{"id": "1"}], **types))
    assert [block.schema.key_alone for block in decoded.blocks] == [False]
