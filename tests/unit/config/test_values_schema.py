"""The schema of the chart's values: made from the settings, strict about names as these are."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from lakesplice.config import Settings
from lakesplice.config.problems import settings_of
from lakesplice.config.values_schema import CHART_DECIDES, secret_names, values_schema
from lakesplice.secrets import is_secret
from tests.support.machine import ROOT

CHART = ROOT / "helm" / "lakesplice"
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
BASE = {"kafka": {"bootstrap_servers": "kafka:9092", "topic_pattern": "shop\\..*"}}


def problems(settings: dict[str, Any]) -> list[str]:
    from jsonschema import Draft7Validator

    return [error.message for error in Draft7Validator(SCHEMA).iter_errors({"settings": settings})]


@pytest.mark.slow
def test_the_committed_schema_is_what_the_settings_make() -> None:
    chart = json.loads((CHART / "chart.schema.json").read_text())
    assert values_schema(chart) == SCHEMA


def test_every_setting_is_in_it_but_what_the_chart_decides() -> None:
    found = {
        path
        for path, _ in settings_of(Settings)
        if path[-1] in _properties(SCHEMA["properties"]["settings"], path[:-1])
    }
    assert {path for path, _ in settings_of(Settings)} - found == set(CHART_DECIDES)


def _properties(schema: dict[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
    for part in path:
        schema = SCHEMA["$defs"][schema["properties"][part]["$ref"].rpartition("/")[2]]
    properties: dict[str, Any] = schema["properties"]
    return properties


@pytest.mark.parametrize(
    "settings",
    [
        BASE,
        {},
        {**BASE, "trigger": "1h30m", "stop_timeout": 90, "compaction": {"bytes_max": "64MiB"}},
        {**BASE, "spark": {"options": {"spark.ui.port": 4040, "spark.ui.enabled": True}}},
        {**BASE, "tables": [{"match": "shop.*", "columns": {"password": "string"}}]},
        {"kafka": {"options": {"ssl.truststore.location": "/etc/truststore.p12"}}},
    ],
    ids=str,
)
def test_the_schema_allows_what_the_service_accepts(settings: dict[str, Any]) -> None:
    pytest.importorskip("jsonschema")
    assert not problems(settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"triger": "5m"},
        {"kafka": {"bootstrap_server": "a:1"}},
        {"trigger": "five minutes"},
        {"compaction": {"threads": 0}},
        {"compaction": {"bytes_max": "64 mebibytes"}},
        {"logging": {"level": "loud"}},
        {"metrics": {"host": "127.0.0.1"}},
        {"spark": {"jars_dir": "/jars"}},
        {"tables": [{"columns": {"id": "bigint"}}]},
        {"kafka": {"options": {"sasl.jaas.config": "x"}}},
        {"kafka": {"options": {"ssl.keystore.password": "x"}}},
        {"spark": {"options": {"spark.hadoop.fs.s3a.secret.key": "x"}}},
    ],
    ids=str,
)
def test_the_schema_refuses_wrong_settings_and_secrets_in_plain_text(
    settings: dict[str, Any],
) -> None:
    pytest.importorskip("jsonschema")
    assert problems(settings)


@pytest.mark.parametrize(
    "name",
    [
        "sasl.jaas.config",
        "ssl.key.password",
        "spark.ssl.keyPassword",
        "aws_secret_access_key",
        "aws_access_key_id",
        "SSL_KEYSTORE_KEY",
        "ssl.truststore.location",
        "security.protocol",
        "client.id",
    ],
)
def test_the_schema_knows_the_same_secrets_as_the_service(name: str) -> None:
    import re

    assert (re.search(secret_names(), name) is not None) == is_secret(name)


def test_the_charts_own_values_fit_its_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert not list(jsonschema.Draft7Validator(SCHEMA).iter_errors(values))
    assert set(values) == set(SCHEMA["properties"]) - {"global"}
