"""Findings about a source database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakesplice.planning.diagnosis.database import DatabaseFacts, judge_database, privileges
from lakesplice.planning.diagnosis.finding import Finding, Verdict

OUTAGE = 3 * 86_400.0
LEAST = (
    "GRANT SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO ",
    "GRANT USAGE ON *.* TO ",
)
RIGHT = {
    "log_bin": "1",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "MINIMAL",
    "binlog_expire_logs_seconds": "2592000",
}
MYSQL = DatabaseFacts(
    "8.4.3", {**RIGHT, "binlog_transaction_compression": "0", "binlog_row_value_options": ""}, LEAST
)
MARIADB = DatabaseFacts(
    "11.4.5-MariaDB-log",
    {**RIGHT, "binlog_legacy_event_pos": "1", "expire_logs_days": "30"},
    LEAST,
)


def judged(facts: DatabaseFacts, *, partial_images: bool = False) -> dict[str, Finding]:
    found = judge_database(facts, OUTAGE, partial_images=partial_images)
    return {one.check: one for one in found}


def changed(facts: DatabaseFacts, **variables: str) -> DatabaseFacts:
    return replace(facts, variables={**facts.variables, **variables})


@pytest.mark.parametrize("facts", [MYSQL, MARIADB])
def test_a_server_as_it_should_be_is_right(facts: DatabaseFacts) -> None:
    assert {one.verdict for one in judged(facts).values()} == {Verdict.OK}


@pytest.mark.parametrize(
    ("facts", "check", "verdict"),
    [
        (changed(MYSQL, log_bin="0"), "binlog", Verdict.PROBLEM),
        (changed(MYSQL, binlog_format="MIXED"), "binlog", Verdict.PROBLEM),
        (changed(MYSQL, binlog_row_image="MINIMAL"), "row image", Verdict.PROBLEM),
        (changed(MYSQL, binlog_row_value_options="PARTIAL_JSON"), "row image", Verdict.PROBLEM),
        (changed(MYSQL, binlog_transaction_compression="1"), "positions", Verdict.PROBLEM),
        (changed(MARIADB, binlog_legacy_event_pos="0"), "positions", Verdict.PROBLEM),
        (
            replace(changed(MARIADB, binlog_legacy_event_pos="0"), version="10.11.6-MariaDB"),
            "positions",
            Verdict.OK,
        ),
        (changed(MYSQL, binlog_expire_logs_seconds="3600"), "binlog expiry", Verdict.PROBLEM),
        (
            changed(MARIADB, binlog_expire_logs_seconds="0", expire_logs_days="0"),
            "binlog expiry",
            Verdict.OK,
        ),
        (
            changed(MARIADB, binlog_expire_logs_seconds="0", expire_logs_days="1"),
            "binlog expiry",
            Verdict.PROBLEM,
        ),
        (replace(MYSQL, version="5.6.51"), "version", Verdict.WARNING),
        (replace(MYSQL, version="strange"), "version", Verdict.WARNING),
        (replace(MARIADB, version="5.5.5-10.3.1-MariaDB"), "version", Verdict.WARNING),
        (replace(MARIADB, version="5.5.5-10.6.1-MariaDB"), "version", Verdict.OK),
        (replace(MYSQL, skew_seconds=-90.0), "clock", Verdict.WARNING),
        (replace(MYSQL, skew_seconds=5.0), "clock", Verdict.OK),
        (replace(MYSQL, grants=("GRANT USAGE ON *.* TO ",)), "grants", Verdict.PROBLEM),
        (replace(MYSQL, grants=("GRANT ALL PRIVILEGES ON *.* TO ",)), "grants", Verdict.WARNING),
    ],
)
def test_settings_that_park_tables_or_lose_changes_are_named(
    facts: DatabaseFacts, check: str, verdict: Verdict
) -> None:
    found = judged(facts)[check]
    assert found.verdict is verdict
    assert bool(found.remedy) == (verdict is not Verdict.OK)


def test_a_server_without_a_binlog_is_not_asked_about_it_again() -> None:
    assert judged(changed(MYSQL, log_bin="0")).keys() == {"version", "binlog", "grants", "clock"}


def test_partial_images_are_right_where_they_are_applied() -> None:
    minimal = changed(MYSQL, binlog_row_image="MINIMAL")
    assert judged(minimal, partial_images=True)["row image"].verdict is Verdict.OK


def test_a_server_that_does_not_say_how_long_it_keeps_binlogs() -> None:
    variables = {k: v for k, v in MYSQL.variables.items() if k != "binlog_expire_logs_seconds"}
    found = judged(replace(MYSQL, variables=variables))["binlog expiry"]
    assert found.verdict is Verdict.UNKNOWN


def test_grants_that_lack_are_named_with_their_statement() -> None:
    found = judged(replace(MYSQL, grants=("GRANT SELECT ON `shop`.* TO ",)))["grants"]
    assert found.seen == "the user lacks REPLICATION SLAVE, REPLICATION CLIENT, RELOAD"
    assert "GRANT REPLICATION SLAVE, REPLICATION CLIENT, RELOAD ON *.*" in found.remedy


def test_grants_are_read_whatever_they_are_on_and_by_either_name() -> None:
    told = (
        "GRANT SELECT (`id`, `name`), INSERT ON `shop`.`orders` TO ",
        "GRANT BINLOG MONITOR, REPLICATION REPLICA ON *.* TO ",
        "GRANT ALL ON `x`.* TO ",
        "GRANT `role`@`%` TO ",
    )
    assert privileges(told) == {
        *("SELECT", "INSERT", "BINLOG MONITOR", "REPLICATION SLAVE", "LOCK TABLES"),
    }
