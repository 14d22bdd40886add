"""The configuration: what is accepted, what is refused, and with which messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakesplice.config import Settings, load
from lakesplice.config.printing import as_values, as_yaml
from lakesplice.config.settings import _OBJECT_STORES
from lakesplice.errors import ConfigurationError
from lakesplice.model.names import TableName
from lakesplice.storage.bucket_access import SCHEMES

SMALLEST = """\
kafka: {bootstrap_servers: "127.0.0.1:9092", topic_pattern: "shop\\\\..*"}
lake: {root: ./lake}
"""


def read(tmp_path: Path, text: str = SMALLEST, **environment: str) -> Settings:
    file = tmp_path / "lakesplice.yaml"
    file.write_text(text, encoding="utf-8")
    return load(file, environment)


def refusal(tmp_path: Path, text: str = SMALLEST, **environment: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path, text, **environment)
    assert caught.value.__cause__ is None
    return str(caught.value)


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


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("triger: 1s", "triger: unknown name; did you mean trigger?"),
        ("metrics: {prot: 1}", "metrics.prot: unknown name; did you mean metrics.port?"),
        ("tables: [{mach: a}]", "tables[0].mach: unknown name; did you mean tables[0].match?"),
        ("port: 1", "port: unknown name; did you mean metrics.port?"),
        ("bootstrap_server: a", "bootstrap_server: unknown name; did you mean kafka.bootstrap_s"),
        (
            "zzz: 1",
            "zzz: unknown name; known here: alerts, compaction, dead_letters, doctor, iceberg,",
        ),
    ],
)
def test_a_misspelt_name_in_the_file_is_refused_with_the_right_one(
    tmp_path: Path, text: str, complaint: str
) -> None:
    assert complaint in refusal(tmp_path, f"{SMALLEST}{text}\n")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("LAKESPLICE_TRIGER", "did you mean LAKESPLICE_TRIGGER?"),
        ("LAKESPLICE_METRICS__PROT", "did you mean LAKESPLICE_METRICS__PORT?"),
        ("LAKESPLICE_METRICS_PORT", "did you mean LAKESPLICE_METRICS__PORT?"),
        ("LAKESPLICE_METRICS__PORT__X", "did you mean LAKESPLICE_METRICS__PORT?"),
        ("LAKESPLICE_LAKE", "cannot be used"),
        ("LAKESPLICE_QQQ", "variables that start with LAKESPLICE_ are settings"),
        ("LAKESPLICE_", "variables that start with LAKESPLICE_ are settings"),
        ("lakesplice_triger", "did you mean LAKESPLICE_TRIGGER?"),
    ],
)
def test_a_misspelt_variable_is_refused_with_the_right_one(
    tmp_path: Path, name: str, complaint: str
) -> None:
    assert complaint in refusal(tmp_path, **{name: "1"})


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
    ("text", "complaint"),
    [
        ("trigger: soon", "trigger: 'soon' cannot be used; not a duration such as"),
        ("trigger: yes", "trigger: True cannot be used"),
        ("trigger: 0", "trigger: 0 cannot be used; allowed: 50ms to 1d"),
        ("trigger: .nan", "trigger: nan cannot be used"),
        ("metrics: {port: 65536}", "metrics.port: 65536 cannot be used; allowed: 0 to 65535"),
        ("metrics: 4", "metrics: 4 cannot be used"),
        ("compaction: {ratio_max: 0}", "compaction.ratio_max: 0 cannot be used; allowed: above 0,"),
        ("logging: {level: loud}", "must be 'debug', 'info', 'warning' or 'error'"),
        ("spark: {driver_memory: lots}", "must be a whole number and its unit"),
        ("spark: {options: {ui.port: 1}}", "ui.port isn't a Spark property"),
        ("spark: {options: {spark.master: x}}", "spark.master cannot be set here"),
        ("tables: [{match: /a(/}]", "not a regular expression"),
        ("tables: [{match: ''}]", "tables[0].match: '' cannot be used"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(
    tmp_path: Path, text: str, complaint: str
) -> None:
    assert complaint in refusal(tmp_path, f"{SMALLEST}{text}\n")


@pytest.mark.parametrize(
    ("kafka", "complaint"),
    [
        ("bootstrap_servers: localhost, topic_pattern: a", "must be host:port"),
        ("bootstrap_servers: 'a:99999', topic_pattern: a", "must be host:port"),
        ("bootstrap_servers: 'a:1', topic_pattern: 'a('", "not a regular expression"),
        ("bootstrap_servers: 'a:1'", "kafka.topic_pattern: is missing; Regular expression for"),
        (
            "bootstrap_servers: 'a:1', topic_pattern: a, options: {group.id: a}",
            "group.id cannot be set here: offsets are kept in the tables",
        ),
        (
            "bootstrap_servers: 'a:1', topic_pattern: a, options: {kafka.security.protocol: a}",
            "write kafka.security.protocol without its `kafka.`",
        ),
        (
            "bootstrap_servers: 'a:1', topic_pattern: 'a.*', dead_letter_topic: a-dead",
            "dead_letter_topic must not match topic_pattern",
        ),
    ],
)
def test_wrong_kafka_settings_are_refused(tmp_path: Path, kafka: str, complaint: str) -> None:
    assert complaint in refusal(tmp_path, f"kafka: {{{kafka}}}\nlake: {{root: a}}\n")


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


def test_storage_that_is_not_known_is_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, SMALLEST.replace("./lake", "hdfs://name/lake"))
    assert "lake.root" in message
    assert "unknown storage" in message


def test_settings_take_the_storage_that_is_there() -> None:
    assert _OBJECT_STORES == SCHEMES


def test_all_problems_are_reported_at_once_with_the_variable_they_came_from(tmp_path: Path) -> None:
    message = refusal(
        tmp_path, "kafka: {topic_pattern: a}\ntriger: 1\n", LAKESPLICE_METRICS__PORT="-1"
    )
    assert "has 4 problems:" in message
    for part in ("kafka.bootstrap_servers: is missing", "lake: is missing", "triger: unknown"):
        assert part in message
    assert "metrics.port (from LAKESPLICE_METRICS__PORT): '-1' cannot be used" in message


def test_secrets_are_in_no_message_and_no_print(tmp_path: Path) -> None:
    secret = "hunter2"
    text = SMALLEST.replace("}\nlake", f", options: {{sasl.password: {secret}}}}}\nlake")
    settings = read(tmp_path, text)
    assert settings.kafka.options["sasl.password"] == secret
    assert secret not in f"{settings!r} {settings} {settings.model_dump()}"
    wrong = SMALLEST.replace("}\nlake", f", options: {{ssl.key.password: [{secret}]}}}}\nlake")
    assert secret not in refusal(tmp_path, wrong)
    wrong = f"{SMALLEST}spark: {{options: {{fs.secret.key: {secret}}}}}\n"
    assert secret not in refusal(tmp_path, wrong)
    broken = f"{SMALLEST}a: [password: {secret}\n"
    assert secret not in refusal(tmp_path, broken)


def test_the_token_of_the_page_is_long_and_never_printed(tmp_path: Path) -> None:
    token = "x1" * 8
    settings = read(tmp_path, f"{SMALLEST}metrics: {{token: {token}}}\n")
    assert settings.metrics.token == token
    assert token not in f"{settings!r}{as_yaml(settings)}{as_values(settings)}"
    message = refusal(tmp_path, f"{SMALLEST}metrics: {{token: {token[1:]}}}\n")
    assert "metrics.token" in message
    assert token[1:] not in message


@pytest.mark.parametrize("text", ["masking: {secret: 4711}", "masking: pepper4711"])
def test_a_secret_that_is_a_number_or_in_the_wrong_place_is_not_shown(
    tmp_path: Path, text: str
) -> None:
    message = refusal(tmp_path, f"{SMALLEST}{text}\n")
    assert "masking" in message
    assert "4711" not in message


def test_a_secret_of_masks_that_can_be_guessed_is_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, f"{SMALLEST}masking: {{secret: abcdefgh1234567}}\n")
    assert "masking.secret" in message
    assert "16" in message
    assert "abcdefgh" not in message
    assert read(tmp_path, f"{SMALLEST}masking: {{secret: abcdefgh12345678}}\n").masking.secret


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: 1\na: 2\n", "the name 'a' is given twice at line 2"),
        ("1: 2\n", "the name 1 isn't text"),
        ("- a\n", "must hold a mapping"),
        ("a: [\n", "is not valid YAML"),
        ("a: !!python/object:os.system {}\n", "is not valid YAML"),
        ("? [a]\n: b\n", "is not valid YAML"),
        ("", "kafka: is missing"),
        pytest.param("[" * 9_000, "nests too deep", marks=pytest.mark.slow),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    assert complaint in refusal(tmp_path, text)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.yaml", tmp_path):
        with pytest.raises(ConfigurationError, match="cannot be read"):
            load(path, {})
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load(tmp_path / "binary", {})


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


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("{url: 'ftp://one'}", "http or https"),
        ("{url: 'https://me:pass@one'}", "basic.auth.user.info"),
        ("{options: {bearer.auth.token: a}}", "without its url"),
        ("{url: 'http://one', options: {user: a}}", "known"),
        ("{url: 'http://one', options: {basic.auth.user.info: a}}", "a colon"),
        ("{url: 'http://one', options: {ssl.key.location: a}}", "belongs to"),
        ("{url: 'http://one', numbers: guid}", "schema-id"),
    ],
)
def test_a_wrong_schema_registry_is_refused(tmp_path: Path, entry: str, why: str) -> None:
    assert why in refusal(tmp_path, f"{SMALLEST}schema_registry: {entry}\n")


def test_mappings_of_types_are_chosen_per_table_by_name(tmp_path: Path) -> None:
    entry = 'tables: [{match: "shop.*", type_mapping: [to-string, decimal-to-double]}]\n'
    settings = read(tmp_path, SMALLEST + entry)
    found = settings.table(TableName("shop", "items"))
    assert found is not None
    assert found.type_mapping == ("to-string", "decimal-to-double")
    assert "to-string" in refusal(tmp_path, SMALLEST + entry.replace("to-string", "to-text"))


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("shape: {partition_by: [day, day]}", "day is named twice"),
        ("shape: {partition_by: [day], exclude: [d*]}", "which exclude leaves out"),
        ("shape: {partition_by: [day]}, partial_images: apply", "needs whole row images"),
        ("shape: {stats_columns: [at, at]}", "at is named twice"),
        ("shape: {stats_columns: [at], exclude: [a*]}", "which exclude leaves out"),
        ("shape: {stats_columns: [email], masks: {e*: redact}}", "which is masked"),
    ],
)
def test_partition_and_stats_columns_that_can_not_be_are_refused(
    tmp_path: Path, entry: str, why: str
) -> None:
    assert why in refusal(tmp_path, f"{SMALLEST}tables: [{{match: shop.orders, {entry}}}]\n")


def test_partition_columns_are_part_of_what_a_table_makes_of_its_source(tmp_path: Path) -> None:
    text = f"{SMALLEST}tables: [{{match: shop.orders, shape: {{partition_by: [country, day]}}}}]\n"
    settings = read(tmp_path, text)
    assert settings.policy(TableName("shop", "orders")).partition_by == ("country", "day")
    assert settings.policy(TableName("shop", "others")).partition_by == ()


def test_columns_with_bounds_are_part_of_what_a_table_makes_of_its_source(tmp_path: Path) -> None:
    text = f"{SMALLEST}tables: [{{match: shop.orders, shape: {{stats_columns: [name, at]}}}}]\n"
    settings = read(tmp_path, text)
    assert settings.policy(TableName("shop", "orders")).stats_columns == ("name", "at")
    assert settings.policy(TableName("shop", "others")).stats_columns == ()
