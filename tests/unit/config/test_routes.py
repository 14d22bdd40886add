"""Which topics are read, and which tables of the lake they become."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from lakesplice.config import Settings, history_settings, settings_for
from lakesplice.model.names import TableName
from tests.support.service_settings import settings_of


def settings(*tables: dict[str, Any], **more: Any) -> Settings:
    return settings_of("lake", tables=tables, **more)


def target(name: str, *tables: dict[str, Any]) -> str:
    return str(settings(*tables).target(TableName(*name.split("."))))


def test_tables_keep_their_names_unless_routed() -> None:
    assert target("shop.orders") == "shop.orders"
    assert target("shop.orders", {"match": "shop.items", "to": "a.b"}) == "shop.orders"
    assert target("shop.orders", {"match": "shop.o*", "to": "sales.orders"}) == "sales.orders"


def test_groups_of_an_expression_stand_for_parts_of_the_name() -> None:
    entry = {"match": r"/(\w+)_(eu|us)\.(.*)/", "to": r"\2.\1_\3"}
    assert target("shop_eu.orders", entry) == "eu.shop_orders"


@pytest.mark.parametrize(
    ("match", "to"),
    [("a.b", "orders"), ("a.b", "a.b.c"), ("a.b", r"a.\1"), (r"/(a)\.b/", r"x.\2"), ("a.b", ".b")],
)
def test_a_route_to_nowhere_is_refused(match: str, to: str) -> None:
    with pytest.raises(ValidationError):
        settings({"match": match, "to": to})


def test_tables_are_read_unless_it_is_said() -> None:
    found = settings({"match": "shop.tmp_*", "read": False})
    assert not found.reads(TableName("shop", "tmp_1"))
    assert found.reads(TableName("shop", "orders"))


def test_a_hash_needs_a_secret_and_the_secret_is_not_shown() -> None:
    hashing = {"match": "shop.*", "shape": {"masks": {"email": "hash"}}}
    with pytest.raises(ValidationError, match=r"set masking\.secret"):
        settings(hashing)
    found = settings(hashing, masking={"secret": "pepper-and-salt-4711"})
    shape = found.shape(TableName("shop", "orders"))
    assert shape is not None
    assert shape.secret == "pepper-and-salt-4711"
    assert "pepper" not in repr(found)
    assert "pepper" not in found.model_dump_json()


def test_a_policy_of_some_tables_lies_over_that_of_all() -> None:
    found = settings(
        {"match": "shop.*", "schema_changes": {"drop_column": "exception"}},
        schema_changes={"add_column": "ignore"},
    )
    policy = found.policy(TableName("shop", "orders"))
    assert (policy.add_column, policy.drop_column) == ("ignore", "exception")
    assert found.policy(TableName("a", "b")).drop_column == "lenient"


def test_metadata_columns_of_some_tables_take_the_place_of_those_of_all() -> None:
    found = settings(
        {"match": "shop.audit", "shape": {"metadata": ["gtid"]}},
        {"match": "shop.plain", "shape": {"metadata": []}},
        {"match": "shop.masked", "shape": {"exclude": ["x"]}},
        metadata={"columns": ["op_ts", "op"], "prefix": "__"},
    )

    def names(table: str) -> list[str]:
        shape = found.shape(TableName("shop", table))
        assert shape is not None
        return [name for name, _ in shape.metadata]

    assert names("audit") == ["__gtid"]
    assert names("plain") == []
    assert names("masked") == names("other") == ["__op_ts", "__op"]
    assert settings().shape(TableName("shop", "orders")) is None


def test_a_metadata_column_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValidationError, match="sent again"):
        settings(metadata={"columns": ["offset"]})
    with pytest.raises(ValidationError, match="known: op_ts"):
        settings({"match": "a.b", "shape": {"metadata": ["when"]}})


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        ({"computed": {"y": "yeer(at)"}}, "known: year"),
        ({"computed": {"y": "upper(7)"}}, "takes a text"),
        ({"computed": {"y": "upper(a"}}, "missing"),
        ({"computed": {" ": "1"}}, "needs a name"),
        ({"computed": {"y": "upper(email)"}, "masks": {"e*": "redact"}}, "would show"),
        ({"computed": {"OP": "1"}, "metadata": ["op"]}, "two columns"),
        ({"computed": {"a": "1", "A": "2"}}, "two columns"),
    ],
)
def test_an_impossible_computed_column_is_refused(shape: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        settings({"match": "shop.*", "shape": shape})


def test_computed_columns_are_expressions_by_name() -> None:
    found = settings({"match": "shop.*", "shape": {"computed": {"one": 1, "y": "YEAR( at )"}}})
    shape = found.shape(TableName("shop", "orders"))
    assert shape is not None
    assert [(name, str(text)) for name, text in shape.computed] == [("one", "1"), ("y", "year(at)")]


def test_the_key_of_merged_tables_has_what_tells_their_topics_apart() -> None:
    found = settings(
        {"match": r"/shop_\d+\.orders/", "to": "shop.orders", "shape": {"key": ["database_name"]}},
        metadata={"columns": ["op"], "prefix": "__"},
    )
    shape = found.shape(TableName("shop_07", "orders"))
    assert shape is not None
    assert [name for name, _ in shape.metadata] == ["__database_name", "__op"]
    assert shape.key == ("__database_name",)
    with pytest.raises(ValidationError, match="differs from change to change"):
        settings({"match": "a.b", "shape": {"key": ["op"]}})


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"not_inserts": "park"}, "no not_inserts: updates and deletes are versions"),
        ({"purge_after": "90d"}, "no purge_after"),
        ({"partial_images": "apply"}, "needs whole row images"),
    ],
)
def test_settings_that_a_history_table_does_not_support_are_refused(
    more: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValidationError, match=why):
        settings({"match": "shop.orders", "mode": "history", **more})


def test_a_history_table_keeps_versions_and_follows_what_empties_others() -> None:
    name = TableName("shop", "orders")
    found = settings({"match": "shop.*", "mode": "history", "key": ["id"]})
    assert found.keeps_versions(name)
    assert found.insert_only(name)
    assert found.not_inserts(name) is None
    assert found.key(name) == ("id",)
    policy = found.policy(name)
    assert policy.truncates
    assert policy.drops
    ignoring = {"truncate_table": "ignore", "drop_table": "ignore"}
    policy = settings({"match": "shop.*", "mode": "history"}, schema_changes=ignoring).policy(name)
    assert not policy.truncates
    assert not policy.drops


HISTORY: dict[str, Any] = {"also": ["history"]}


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ({"match": "shop.*"}, "shop.orders_history"),
        ({"match": "shop.*", "to": "sales.orders"}, "sales.orders_history"),
        ({"match": "shop.*", "history": {"to": "versions.orders"}}, "versions.orders"),
        ({"match": r"/(shop)\.(.*)/", "history": {"to": r"old.\1_\2"}}, "old.shop_orders"),
    ],
)
def test_a_history_table_beside_another_one_has_a_name_and_almost_the_same_settings(
    entry: dict[str, Any], name: str
) -> None:
    table = TableName("shop", "orders")
    more = {"retention": 7200, "purge_after": 864000, "key": ["id"], "whole_snapshots": False}
    found = settings({**entry, **HISTORY, **more})
    beside = history_settings(found)
    assert beside is not None
    assert str(beside.target(table)) == name
    assert beside.keeps_versions(table)
    assert not found.keeps_versions(table)
    assert (beside.key(table), beside.retention(table)) == (("id",), 7200)
    its, current = beside.table(table), found.table(table)
    assert its is not None
    assert current is not None
    assert (its.purge_after, current.purge_after) == (None, 864000)
    assert not its.whole_snapshots
    assert not beside.reads(TableName("other", "orders"))
    for topic in ("a.shop.orders", "shop.orders"):
        assert settings_for(found, beside.target(table), [topic]).keeps_versions(table)
        assert settings_for(found, found.target(table), [topic]) is found
    assert settings_for(found, beside.target(table), ["a.other.orders", "x"]) is found


def test_without_one_there_are_no_settings_of_history_tables() -> None:
    assert history_settings(settings({"match": "shop.*", "mode": "history"})) is None


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"mode": "history"}, "mode upsert"),
        ({"mode": "insert-only"}, "mode upsert"),
        ({"partial_images": "apply"}, "whole row images"),
        ({"to": "a.b", "history": {"to": "a.b"}}, "the same table"),
        ({"match": "shop.orders", "history": {"to": "shop.orders"}}, "the same table"),
        ({"history": {"to": "orders"}}, "database.table"),
        ({"also": ["history", "history"]}, "twice"),
        ({"also": [], "history": {"to": "a.b"}}, "needs also"),
        ({"also": ["history", "iceberg"]}, "set iceberg.catalog"),
    ],
)
def test_a_history_table_that_can_not_be_is_refused_with_the_reason(
    entry: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValidationError, match=why):
        settings({"match": "shop.*", **HISTORY, **entry})
