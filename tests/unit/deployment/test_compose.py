"""The compose file and what it mounts fit together: names, ports, passwords, times."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakesplice import __version__
from lakesplice.config import load
from lakesplice.config.quantities import seconds_of
from lakesplice.model.names import TableName
from tests.support import tools
from tests.support.machine import ROOT

DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
CONNECTORS = sorted((DEPLOY / "connectors").glob("*.json"))
PASSWORDS = re.findall(r"(?m)^(\w+)=$", (DEPLOY / ".env.example").read_text())


def connector(path: Path) -> dict[str, str]:
    settings: dict[str, str] = json.loads(path.read_text())
    return settings


def test_compose_itself_finds_nothing_wrong() -> None:
    command = [
        *tools.compose(),
        "--file",
        "compose.yaml",
        "--env-file",
        os.devnull,
        "config",
        "--quiet",
    ]
    chosen = {**os.environ, **dict.fromkeys(PASSWORDS, "chosen")}
    done = subprocess.run(command, cwd=DEPLOY, capture_output=True, text=True, env=chosen)
    assert done.returncode == 0, done.stderr
    missing = {name: value for name, value in chosen.items() if name != PASSWORDS[0]}
    refused = subprocess.run(command, cwd=DEPLOY, capture_output=True, text=True, env=missing)
    assert refused.returncode != 0
    assert PASSWORDS[0] in refused.stderr


def test_every_image_has_a_version_and_ours_is_the_present_one() -> None:
    tags = {name: service["image"].rpartition(":")[2] for name, service in SERVICES.items()}
    assert all(re.match(r"v?\d+\.\d+", tag) for tag in tags.values()), tags
    assert tags["lakesplice"] == __version__
    assert (DEPLOY / SERVICES["lakesplice"]["build"]["context"] / "Dockerfile").exists()


def test_no_password_is_written_down() -> None:
    assert PASSWORDS
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if "PASSWORD" in name:
                assert re.fullmatch(r"\$\{\w+:\?.+\}", value), name
    for path in CONNECTORS:
        assert connector(path)["database.password"] == "${env:CDC_PASSWORD}"
    used = set(re.findall(r"\$\{(\w+):\?", (DEPLOY / "compose.yaml").read_text()))
    assert used == set(PASSWORDS)


def test_every_port_is_open_to_this_machine_alone() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_everything_that_is_mounted_is_there() -> None:
    for service in SERVICES.values():
        for mount in service.get("volumes", ()):
            source = mount.partition(":")[0]
            assert source in COMPOSE["volumes"] or (DEPLOY / source).exists(), mount
            assert mount.endswith(":ro") == source.startswith("."), mount


def test_a_container_waits_only_for_one_with_a_health_check() -> None:
    for service in SERVICES.values():
        for name, how in service.get("depends_on", {}).items():
            assert how["condition"] != "service_healthy" or "healthcheck" in SERVICES[name]


def test_the_service_finds_broker_topics_and_lake() -> None:
    settings = load(DEPLOY / "lakesplice.yaml", {})
    ours = SERVICES["lakesplice"]
    assert settings.kafka.bootstrap_servers == "kafka:9092"
    advertised = SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert advertised == f"PLAINTEXT://{settings.kafka.bootstrap_servers}"
    assert f"lake:{settings.lake.address}" in ours["volumes"]
    assert "scratch:/tmp" in ours["volumes"]
    for path in CONNECTORS:
        prefix, database = (
            connector(path)[name] for name in ("topic.prefix", "database.include.list")
        )
        topic = f"{prefix}.{database}.orders"
        assert settings.kafka.topic_pattern.fullmatch(topic)
        assert str(TableName.from_topic(topic)) == "shop.orders"
        history = connector(path)["schema.history.internal.kafka.topic"]
        assert not settings.kafka.topic_pattern.fullmatch(history)


def test_the_service_has_time_to_stop_and_no_rights_to_spare() -> None:
    settings, ours = load(DEPLOY / "lakesplice.yaml", {}), SERVICES["lakesplice"]
    least = settings.stop_timeout + settings.kafka.request_timeout_seconds
    assert seconds_of(ours["stop_grace_period"]) > least
    assert ours["read_only"] is True
    assert ours["cap_drop"] == ["ALL"]


def test_prometheus_scrapes_the_service_and_grafana_asks_prometheus() -> None:
    settings = load(DEPLOY / "lakesplice.yaml", {})
    assert settings.metrics.host == "0.0.0.0"
    scrapes = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yaml").read_text())
    (job,) = scrapes["scrape_configs"]
    (target,) = job["static_configs"]
    assert target["targets"] == [f"lakesplice:{settings.metrics.port}"]
    assert scrapes["rule_files"] == ["alerts.yaml"]
    provisioning = DEPLOY / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())[
        "datasources"
    ]
    assert source["url"] == "http://prometheus:9090"
    assert source["jsonData"]["timeInterval"] == scrapes["global"]["scrape_interval"]
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "lakesplice.yaml").read_text())[
        "providers"
    ]
    assert (
        f"./grafana/dashboards:{provider['options']['path']}:ro" in (SERVICES["grafana"]["volumes"])
    )


@pytest.mark.parametrize("path", CONNECTORS, ids=lambda path: path.stem)
def test_a_connector_sends_what_is_read(path: Path) -> None:
    settings = connector(path)
    assert all(isinstance(value, str) for value in settings.values())
    for converter in ("key.converter", "value.converter"):
        assert settings[converter] == "org.apache.kafka.connect.json.JsonConverter"
    assert settings["decimal.handling.mode"] in ("precise", "string")
    assert settings["binary.handling.mode"] == "bytes"
    assert settings["bigint.unsigned.handling.mode"] == "precise"
    assert settings["enable.time.adjuster"] == "false"
    assert settings["time.precision.mode"] == "adaptive_time_microseconds"
    assert settings["skipped.operations"] == "t"
    assert "." not in settings["topic.prefix"]
    assert not [name for name in settings if name.startswith("transforms")]


# Without each of them values differ from the source's, and no event shows it.
TRUE_VALUES = {
    "value.converter.replace.null.with.default": "false",
    "bigint.unsigned.handling.mode": "precise",
    "enable.time.adjuster": "false",
    "include.schema.changes": "true",
}
OF_CONNECTORS = [
    page
    for page in sorted((*ROOT.glob("*.md"), *DEPLOY.rglob("*.md"), *(ROOT / "docs").glob("*.md")))
    if page.name not in ("CHANGELOG.md", "configuration.md")
    and re.search(r"enable\.time\.adjuster|value\.converter`|JsonConverter", page.read_text())
]


@pytest.mark.parametrize("path", CONNECTORS, ids=lambda path: path.stem)
def test_a_connector_keeps_values_as_the_source_has_them(path: Path) -> None:
    settings = connector(path)
    assert TRUE_VALUES.items() <= settings.items()
    assert int(settings["binlog.buffer.size"]) > 0
    # What tells of schema changes from the beginning is kept for ever.
    assert settings["topic.creation.schema.include"] == settings["topic.prefix"]
    assert settings["topic.creation.schema.retention.ms"] == "-1"
    assert settings["topic.creation.schema.partitions"] == "1"


@pytest.mark.parametrize("path", CONNECTORS, ids=lambda path: path.stem)
def test_the_service_reads_what_the_connector_tells_of_schema_changes(path: Path) -> None:
    topic, service = connector(path)["topic.prefix"], load(DEPLOY / "lakesplice.yaml", {})
    assert tuple(service.schema_change_topics.names) == (topic,)
    assert service.schema_change_topics.bigint_unsigned_handling_mode == "precise"
    assert not re.fullmatch(service.kafka.topic_pattern, topic)


def test_every_page_about_connectors_names_what_keeps_values_true() -> None:
    assert len(OF_CONNECTORS) >= 3
    for page in OF_CONNECTORS:
        text = page.read_text()
        for name in (*TRUE_VALUES, "binlog.buffer.size", "binlog_legacy_event_pos"):
            assert name in text, (page.name, name)
    formats = (ROOT / "docs" / "formats.md").read_text()
    flattening = [block for block in formats.split("```") if "ExtractNewRecordState\n" in block]
    assert flattening
    for block in flattening:
        assert "transforms.unwrap.replace.null.with.default=false" in block
    assert "value.converter.ignore.default.for.nullables=true" in formats


def test_the_database_gives_each_change_a_position_of_its_own() -> None:
    assert "--binlog-legacy-event-pos=1" in SERVICES["mariadb"]["command"]


def test_every_setting_of_a_connector_is_explained() -> None:
    table = (DEPLOY / "connectors" / "README.md").read_text().partition("| setting |")[2]
    rows = re.findall(r"(?m)^\| (`[^|]+) \|", table)
    explained = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    for path in CONNECTORS:
        assert explained == set(connector(path))


def test_the_database_writes_the_binlog_that_the_connector_needs() -> None:
    options = dict(
        option.removeprefix("--").split("=") for option in SERVICES["mariadb"]["command"]
    )
    assert options["binlog-format"] == "ROW"
    assert options["binlog-row-image"] == "FULL"
    retention = int(connector(CONNECTORS[0])["topic.creation.default.retention.ms"]) / 1000
    assert int(options["binlog-expire-logs-seconds"]) >= retention
