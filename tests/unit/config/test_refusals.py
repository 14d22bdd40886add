"""Settings that are refused, with what is allowed instead, and without any secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.config import load
from lakesplice.config.printing import as_values, as_yaml
from lakesplice.errors import ConfigurationError
from tests.support.service_settings import SMALLEST, read, refusal


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("triger: 1s", "triger: unknown name; did you mean trigger?"),
        ("metrics: {prot: 1}", "metrics.prot: unknown name; did you mean metrics.port?"),
        ("tables: [{mach: a}]", "tables[0].mach: unknown name; did you mean tables[0].match?"),
        ("port: 1", "port: unknown name; did you mean metrics.port?"),
        ("bootstrap_server: a", "bootstrap_server: unknown name; did you mean kafka.bootstrap_s"),
        (
            "tables: [{match: a, shape: {rename: {a: b}}}]",
            "tables[0].shape.rename: unknown name; known here: bloom_filters, computed, ",
        ),
        (
            "zzz: 1",
            "zzz: unknown name; known here: alerts, cluster, compaction, dead_letters, doctor,",
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
        ("tables: [{match: a, key: id}]", "'id' cannot be used; must be a list, such as [a, b]"),
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


def test_storage_that_is_not_known_is_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, SMALLEST.replace("./lake", "hdfs://name/lake"))
    assert "lake.root" in message
    assert "unknown storage" in message


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


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("shape: {partition_by: [day, day]}", "day is named twice"),
        ("shape: {partition_by: [day], exclude: [d*]}", "which exclude leaves out"),
        ("shape: {partition_by: [day]}, partial_images: apply", "needs whole row images"),
        ("shape: {stats_columns: [at, at]}", "at is named twice"),
        ("shape: {stats_columns: [at], exclude: [a*]}", "which exclude leaves out"),
        ("shape: {stats_columns: [email], masks: {e*: redact}}", "which is masked"),
        ("cluster_by: [at, id, at]", "one of them is named twice"),
    ],
)
def test_partition_and_stats_columns_that_can_not_be_are_refused(
    tmp_path: Path, entry: str, why: str
) -> None:
    assert why in refusal(tmp_path, f"{SMALLEST}tables: [{{match: shop.orders, {entry}}}]\n")
