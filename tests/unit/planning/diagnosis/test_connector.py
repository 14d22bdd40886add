"""Findings about a connector's settings; docs/connector.md has the right ones."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lakesplice.planning.diagnosis.connector import (
    ConnectorFacts,
    is_looked_at,
    is_of_mysql,
    judge_connectors,
)
from lakesplice.planning.diagnosis.finding import Finding, Verdict
from tests.support.machine import ROOT

JSON = "org.apache.kafka.connect.json.JsonConverter"
RIGHT = {
    "topic.prefix": "shop",
    "value.converter": JSON,
    "value.converter.schemas.enable": "true",
    "value.converter.replace.null.with.default": "false",
    "bigint.unsigned.handling.mode": "precise",
    "enable.time.adjuster": "false",
    "binlog.buffer.size": "10000",
}


def judged(changed: dict[str, str | None] | None = None, **facts: Any) -> list[Finding]:
    """The findings that aren't right, for the right settings with these changed or left out."""
    settings = {**RIGHT, **(changed or {})}
    kept = {name: value for name, value in settings.items() if value is not None}
    told: dict[str, Any] = {"state": "RUNNING", "tasks": 1, "tasks_failed": 0, **facts}
    found = judge_connectors([ConnectorFacts("source", settings=kept, **told)])
    return [one for one in found if one.verdict is not Verdict.OK]


def test_right_settings_are_right_as_are_defaults_that_change_no_value() -> None:
    assert not judged()
    assert not judged({"decimal.handling.mode": "string", "skipped.operations": "none"})


@pytest.mark.parametrize(
    ("name", "value", "verdict"),
    [
        ("bigint.unsigned.handling.mode", None, Verdict.PROBLEM),
        ("bigint.unsigned.handling.mode", "long", Verdict.PROBLEM),
        ("enable.time.adjuster", None, Verdict.WARNING),
        ("enable.time.adjuster", "true", Verdict.WARNING),
        ("binlog.buffer.size", None, Verdict.WARNING),
        ("binlog.buffer.size", "0", Verdict.WARNING),
        ("decimal.handling.mode", "double", Verdict.PROBLEM),
        ("time.precision.mode", "connect", Verdict.PROBLEM),
        ("binary.handling.mode", "hex", Verdict.WARNING),
        ("include.schema.changes", "false", Verdict.WARNING),
        ("skipped.operations", "t,d", Verdict.WARNING),
        ("value.converter.replace.null.with.default", None, Verdict.PROBLEM),
        ("value.converter.replace.null.with.default", "true", Verdict.PROBLEM),
        ("value.converter.schemas.enable", "false", Verdict.WARNING),
        ("topic.prefix", "my.shop", Verdict.WARNING),
    ],
)
def test_a_setting_that_changes_values_or_hides_changes_is_named(
    name: str, value: str | None, verdict: Verdict
) -> None:
    (found,) = judged({name: value})
    assert found.verdict is verdict
    assert name in found.seen
    assert found.remedy
    if name in ("binlog.buffer.size", "enable.time.adjuster"):
        assert ("by default" in found.seen) == (value is None)


def test_every_setting_of_the_connectors_page_is_looked_at() -> None:
    page = (ROOT / "docs" / "connector.md").read_text()
    table = page[page.index("| setting |") : page.index("Each table needs a primary key")]
    named = {
        name
        for row in table.splitlines()[2:]
        if row.startswith("|")
        if "(server)" not in row and "MariaDB from" not in row
        for name in re.findall(r"`([a-z.]+)`", row.split("|")[1])
    }
    assert named >= {"binlog.buffer.size", "transforms", "tombstones.on.delete"}
    assert not {name for name in named - {"key.converter"} if not is_looked_at(name)}


def test_converters_to_avro_have_another_setting_for_nulls() -> None:
    avro = {"value.converter": "io.confluent.connect.avro.AvroConverter"}
    (found,) = judged(dict(avro))
    assert "value.converter.ignore.default.for.nullables" in found.seen
    assert found.verdict is Verdict.PROBLEM
    assert not judged({**avro, "value.converter.ignore.default.for.nullables": "true"})
    (found,) = judged({"value.converter": "io.apicurio.registry.utils.converter.AvroConverter"})
    assert "use another one" in found.remedy


def test_converters_that_only_the_worker_configures_are_unknown() -> None:
    (found,) = judged({"value.converter": None, "value.converter.replace.null.with.default": None})
    assert found.verdict is Verdict.WARNING
    assert "worker" in found.seen


def test_events_without_schemas_are_right_with_a_topic_of_schema_changes() -> None:
    assert not judged({"value.converter.schemas.enable": "false"}, types_told=True)


def test_a_flattening_transform_lacks_the_row_before_and_may_replace_nulls() -> None:
    flat: dict[str, str | None] = {
        "transforms": "route, unwrap",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
    }
    found = judged(flat)
    assert [one.verdict for one in found] == [Verdict.PROBLEM, Verdict.WARNING]
    assert "transforms.unwrap.replace.null.with.default" in found[0].seen
    (found_later,) = judged({**flat, "transforms.unwrap.replace.null.with.default": "false"})
    assert "the row before is missing" in found_later.seen


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"state": "PAUSED"}, "paused"),
        ({"tasks": 2, "tasks_failed": 1}, "running, 1 of 2 tasks failed"),
        ({"tasks": 0}, "without a task"),
    ],
)
def test_a_connector_that_does_not_run_is_a_problem(facts: dict[str, Any], said: str) -> None:
    (found,) = judged(**facts)
    assert found.verdict is Verdict.PROBLEM
    assert said in found.seen


def test_a_connector_whose_topics_are_not_read_is_not_judged() -> None:
    assert not judged({"binlog.buffer.size": None}, is_read=False)
    assert judged({"binlog.buffer.size": None}, is_read=None), "topics aren't known"


def test_connect_without_a_connector_may_be_another_cluster() -> None:
    (found,) = judge_connectors([])
    assert found.verdict is Verdict.WARNING


def test_no_setting_that_may_be_secret_is_looked_at() -> None:
    for name in (
        "database.password",
        "transforms.mask.replacement",
        "value.converter.basic.auth.user.info",
        "schema.history.internal.producer.sasl.jaas.config",
    ):
        assert not is_looked_at(name)


def test_connectors_of_other_sources_are_known_by_their_class() -> None:
    assert is_of_mysql("io.debezium.connector.mysql.MySqlConnector")
    assert is_of_mysql("io.debezium.connector.mariadb.MariaDbConnector")
    assert not is_of_mysql("io.debezium.connector.postgresql.PostgresConnector")
