"""The configuration: where settings come from, and how they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakesplice.config import load
from lakesplice.config.settings import _OBJECT_STORES
from lakesplice.model.names import TableName
from lakesplice.storage.bucket_access import SCHEMES
from tests.support.service_settings import SMALLEST, read, refusal


def test_the_smallest_useful_file_is_enough(tmp_path: Path) -> None:
    settings = read(tmp_path)
    assert settings.kafka.bootstrap_servers == "127.0.0.1:9092"
    assert settings.kafka.topic_pattern.fullmatch("shop.orders")
    assert settings.lake.root == "./lake"
    assert settings.trigger == 300
    assert settings.metrics.host == "127.0.0.1"


def test_the_environment_alone_is_enough() -> None:
    settings = load(
        None,
        {
            "LAKESPLICE_KAFKA__BOOTSTRAP_SERVERS": "a:1,b:2",
            "LAKESPLICE_KAFKA__TOPIC_PATTERN": ".*",
            "LAKESPLICE_LAKE__ROOT": "/lake",
            "HOME": "/root",
        },
    )
    assert settings.kafka.bootstrap_servers == "a:1,b:2"
    assert settings.lake.address == "/lake"


def test_the_process_environment_is_read_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKESPLICE_TRIGGER", "7s")
    file = tmp_path / "c.yaml"
    file.write_text(SMALLEST)
    assert load(file).trigger == 7


def test_the_environment_wins_over_the_file_setting_by_setting(tmp_path: Path) -> None:
    text = SMALLEST + "metrics: {port: 1, host: 10.0.0.1}\n"
    settings = read(tmp_path, text, LAKESPLICE_METRICS__PORT="2")
    assert (settings.metrics.port, settings.metrics.host) == (2, "10.0.0.1")


def test_a_single_variable_wins_over_that_of_its_section(tmp_path: Path) -> None:
    variables = {"LAKESPLICE_METRICS": "{port: 1, host: a}", "LAKESPLICE_METRICS__PORT": "2"}
    settings = read(tmp_path, **variables)
    assert (settings.metrics.port, settings.metrics.host) == (2, "a")


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("5m", 300), ("1s", 1), ("500ms", 0.5), ("1h30m", 5_400), ("'90'", 90), ("2.5", 2.5), (7, 7)],
)
def test_durations_are_written_as_people_do(
    tmp_path: Path, written: object, seconds: float
) -> None:
    assert read(tmp_path, f"{SMALLEST}trigger: {written}\n").trigger == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("written", "count"), [("64MiB", 64 * 2**20), ("2GB", 2 * 10**9), (500, 500), ("1 KiB", 1024)]
)
def test_sizes_are_written_as_people_do(tmp_path: Path, written: object, count: int) -> None:
    settings = read(tmp_path, f"{SMALLEST}compaction: {{bytes_max: {written}}}\n")
    assert settings.compaction.bytes_max == count


def test_options_are_passed_through_as_texts(tmp_path: Path) -> None:
    text = SMALLEST.replace(
        "}\nlake", ", options: {security.protocol: SSL, a.b: true, c: 5}}\nlake"
    )
    settings = read(tmp_path, text, LAKESPLICE_KAFKA__OPTIONS__SASL_JAAS_CONFIG="x y;")
    assert dict(settings.kafka.options) == {
        "security.protocol": "SSL",
        "a.b": "true",
        "c": "5",
        "sasl.jaas.config": "x y;",
    }


def test_options_can_be_one_variable_of_yaml(tmp_path: Path) -> None:
    options = '{"spark.driver.maxResultSize": "2g"}'
    settings = read(tmp_path, LAKESPLICE_SPARK__OPTIONS=options)
    assert dict(settings.spark.options) == {"spark.driver.maxResultSize": "2g"}


def test_settings_do_not_change(tmp_path: Path) -> None:
    settings = read(tmp_path)
    with pytest.raises(ValueError, match="frozen"):
        settings.trigger = 1
    options: Any = settings.kafka.options
    with pytest.raises(TypeError):
        options["a"] = "b"


def test_the_variables_of_kubernetes_services_are_no_settings(tmp_path: Path) -> None:
    read(
        tmp_path,
        LAKESPLICE_SERVICE_HOST="10.0.0.1",
        LAKESPLICE_SERVICE_PORT="9464",
        LAKESPLICE_SERVICE_PORT_METRICS="9464",
        LAKESPLICE_PORT="tcp://10.0.0.1:9464",
        LAKESPLICE_PORT_9464_TCP="tcp://10.0.0.1:9464",
        LAKESPLICE_PORT_9464_TCP_PROTO="tcp",
        LAKESPLICE_METRICS_PORT_9464_TCP_ADDR="10.0.0.1",
    )


@pytest.mark.parametrize(
    ("root", "address"),
    [
        ("file:///lake", "/lake"),
        ("./lake", str(Path("lake").absolute())),
        ("s3://bucket/lake", "s3://bucket/lake"),
        ("abfss://box/lake", "abfss://box/lake"),
    ],
)
def test_a_lake_is_a_folder_or_an_address(tmp_path: Path, root: str, address: str) -> None:
    assert read(tmp_path, SMALLEST.replace("./lake", root)).lake.address == address


def test_settings_take_the_storage_that_is_there() -> None:
    assert _OBJECT_STORES == SCHEMES


def test_tables_are_matched_by_glob_or_regular_expression_and_the_first_counts(
    tmp_path: Path,
) -> None:
    text = """
tables:
  - {match: shop.order_*, columns: {id: bigint}}
  - {match: '/shop\\.(orders|items)/', columns: {id: int}}
  - {match: 'shop.*', columns: {}}
"""
    settings = read(tmp_path, SMALLEST + text)
    found = [
        settings.table(TableName("shop", name))
        for name in ("order_lines", "items", "item", "orders")
    ]
    assert [settings.tables.index(entry) for entry in found if entry] == [0, 1, 2, 1]
    assert settings.table(TableName("other", "items")) is None


def test_declared_types_are_those_the_decoder_knows(tmp_path: Path) -> None:
    text = SMALLEST + "tables: [{match: shop.*, columns: {id: bigint, total: 'decimal(12,2)'}}]\n"
    declared = read(tmp_path, text).declared(TableName("shop", "orders"))
    assert declared is not None
    assert {name: column.type.name for name, column in declared.items()} == {
        "id": "long",
        "total": "decimal(12,2)",
    }
    assert read(tmp_path, text).declared(TableName("other", "orders")) is None
    message = refusal(tmp_path, text.replace("bigint", "bigit"))
    assert "tables[0].columns" in message
    assert "column='id' type='bigit'" in message


def test_a_schema_registry_is_an_address_and_options_that_are_known(tmp_path: Path) -> None:
    text = SMALLEST + "schema_registry: {url: 'https://one:8081/ , http://two/apis/ccompat/v7'}\n"
    secret = '{"basic.auth.user.info": "me:hidden"}'
    settings = read(tmp_path, text, LAKESPLICE_SCHEMA_REGISTRY__OPTIONS=secret)
    registry = settings.schema_registry
    assert registry.url == "https://one:8081,http://two/apis/ccompat/v7"
    assert registry.options["basic.auth.user.info"] == "me:hidden"
    assert "hidden" not in repr(settings) + str(settings.model_dump(mode="json"))


def test_mappings_of_types_are_chosen_per_table_by_name(tmp_path: Path) -> None:
    entry = 'tables: [{match: "shop.*", type_mapping: [to-string, decimal-to-double]}]\n'
    settings = read(tmp_path, SMALLEST + entry)
    found = settings.table(TableName("shop", "items"))
    assert found is not None
    assert found.type_mapping == ("to-string", "decimal-to-double")
    assert "to-string" in refusal(tmp_path, SMALLEST + entry.replace("to-string", "to-text"))


def test_partition_columns_are_part_of_what_a_table_makes_of_its_source(tmp_path: Path) -> None:
    text = f"{SMALLEST}tables: [{{match: shop.orders, shape: {{partition_by: [country, day]}}}}]\n"
    settings = read(tmp_path, text)
    assert settings.policy(TableName("shop", "orders")).partition_by == ("country", "day")
    assert settings.policy(TableName("shop", "others")).partition_by == ()


def test_columns_with_bounds_are_part_of_what_a_table_makes_of_its_source(tmp_path: Path) -> None:
    shape = "{stats_columns: [name, at], bloom_filters: true}"
    text = f"{SMALLEST}tables: [{{match: shop.orders, shape: {shape}}}]\n"
    orders, others = (
        read(tmp_path, text).policy(TableName("shop", name)) for name in ("orders", "others")
    )
    assert (orders.stats_columns, orders.bloom_filters) == (("name", "at"), True)
    assert (others.stats_columns, others.bloom_filters) == ((), False)
