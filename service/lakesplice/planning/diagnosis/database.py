"""Judges a source database: its binlog, what the connector's user may do, and its clock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lakesplice.planning.diagnosis.finding import Area, Finding, first_names, span

_AREA = Area("database")
_DAY = 86_400.0
_SKEW_WARNING = 30.0
_VERSION = re.compile(r"(\d+)\.(\d+)")
_GRANT = re.compile(r"GRANT (.+?) ON (\S+) TO ", re.IGNORECASE)
_EVERYTHING = "ALL PRIVILEGES"
_ALIASES = {"ALL": _EVERYTHING, "REPLICATION REPLICA": "REPLICATION SLAVE"}
_OF_TABLES = frozenset(("SELECT", "LOCK TABLES"))
_ON = frozenset(("1", "ON"))
# Since this release of MariaDB all changes of a transaction share one position, unless configured
# otherwise.
_ONE_POSITION_FROM = (11, 4)

# The variables that are read from the server; those that it doesn't have are left out.
VARIABLES = (
    *("log_bin", "binlog_format", "binlog_row_image", "binlog_row_metadata"),
    *("binlog_row_value_options", "binlog_transaction_compression", "binlog_legacy_event_pos"),
    *("binlog_expire_logs_seconds", "expire_logs_days"),
)


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """A server: its version, its variables (values in upper case), the statements of SHOW GRANTS up
    to the user's name, and how many seconds its clock is ahead of ours.
    """

    version: str
    variables: Mapping[str, str] = field(default_factory=dict)
    grants: tuple[str, ...] = ()
    skew_seconds: float = 0.0

    @property
    def is_mariadb(self) -> bool:
        """Whether it is a MariaDB."""
        return "mariadb" in self.version.lower()

    @property
    def release(self) -> tuple[int, int]:
        """The first two numbers of its version; zeros if it has none."""
        found = _VERSION.match(self.version.removeprefix("5.5.5-"))
        return (int(found[1]), int(found[2])) if found else (0, 0)


def judge_database(
    facts: DatabaseFacts, outage_seconds: float, *, partial_images: bool
) -> Iterator[Finding]:
    """Judge a server; `partial_images`: images that lack columns are applied."""
    yield _judge_version(facts)
    yield from _judge_binlog(facts)
    if _is_on(facts, "log_bin"):
        yield _judge_image(facts, partial_images)
        yield _judge_metadata(facts)
        yield from _judge_positions(facts)
        yield _judge_expiry(facts, outage_seconds)
    yield from _judge_grants(facts)
    yield _judge_clock(facts.skew_seconds)


def _judge_version(facts: DatabaseFacts) -> Finding:
    kind, oldest = ("MariaDB", (10, 5)) if facts.is_mariadb else ("MySQL", (5, 7))
    seen = facts.version if facts.is_mariadb else f"MySQL {facts.version}"
    if facts.release >= oldest:
        return _AREA.ok("version", seen)
    least = f"{kind} {oldest[0]}.{oldest[1]}"
    return _AREA.warning("version", seen, f"older than {least}, which Debezium supports; upgrade")


def _judge_binlog(facts: DatabaseFacts) -> Iterator[Finding]:
    if not _is_on(facts, "log_bin"):
        yield _AREA.problem(
            "binlog", "log_bin is off", "start the server with log_bin and a server_id"
        )
        return
    written = facts.variables.get("binlog_format", "ROW")
    if written == "ROW":
        yield _AREA.ok("binlog", "log_bin is on, binlog_format=ROW")
    else:
        yield _AREA.problem(
            "binlog", f"binlog_format={written}: rows aren't in the binlog", "set it to ROW"
        )


def _judge_image(facts: DatabaseFacts, partial_images: bool) -> Finding:
    image = facts.variables.get("binlog_row_image", "FULL")
    if "PARTIAL_JSON" in facts.variables.get("binlog_row_value_options", ""):
        return _AREA.problem(
            "row image",
            "binlog_row_value_options=PARTIAL_JSON: a JSON column's changes aren't whole",
            "set it to an empty value",
        )
    if image == "FULL":
        return _AREA.ok("row image", "binlog_row_image=FULL")
    seen = f"binlog_row_image={image}: images lack columns"
    if partial_images:
        return _AREA.ok("row image", f"{seen}, and partial_images is apply")
    return _AREA.problem(
        "row image",
        f"{seen}, which parks a table",
        "set binlog_row_image=FULL, or partial_images: apply (docs/formats.md)",
    )


def _judge_metadata(facts: DatabaseFacts) -> Finding:
    kept = facts.variables.get("binlog_row_metadata")
    if kept is None:
        return _AREA.ok("row metadata", "this server has no binlog_row_metadata")
    return _AREA.ok("row metadata", f"binlog_row_metadata={kept}; either will do")


def _judge_positions(facts: DatabaseFacts) -> Iterator[Finding]:
    if _is_on(facts, "binlog_transaction_compression"):
        yield _AREA.problem(
            "positions",
            "binlog_transaction_compression=ON: changes of a transaction share a position",
            "set it to OFF: their order is unknown, which parks a table",
        )
    elif facts.is_mariadb and facts.release >= _ONE_POSITION_FROM:
        if _is_on(facts, "binlog_legacy_event_pos"):
            yield _AREA.ok("positions", "binlog_legacy_event_pos=1")
        else:
            yield _AREA.problem(
                "positions",
                "binlog_legacy_event_pos=0: changes of a transaction share a position",
                "set binlog_legacy_event_pos=1: their order is unknown, which parks a table",
            )
    else:
        yield _AREA.ok("positions", "each change has its own")


def _judge_expiry(facts: DatabaseFacts, outage_seconds: float) -> Finding:
    kept = _expiry(facts.variables)
    if kept is None:
        return _AREA.unknown(
            "binlog expiry",
            "the server doesn't say how long it keeps its binlogs",
            "check that it is longer than the connector may be down; managed servers have a "
            "setting",
        )
    if kept == 0:
        return _AREA.ok("binlog expiry", "binlogs are kept until somebody purges them")
    seen = f"binlogs are kept for {span(kept)}; doctor.longest_outage is {span(outage_seconds)}"
    if kept >= outage_seconds:
        return _AREA.ok("binlog expiry", seen)
    return _AREA.problem(
        "binlog expiry",
        seen,
        "raise binlog_expire_logs_seconds: a connector whose binlog is gone needs a new snapshot",
    )


def _expiry(variables: Mapping[str, str]) -> float | None:
    """Return how many seconds binlogs are kept, 0 for ever; None if that isn't known."""
    seconds = _number(variables.get("binlog_expire_logs_seconds"))
    days = _number(variables.get("expire_logs_days"))
    if seconds is None and days is None:
        return None
    return seconds or (days or 0.0) * _DAY


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _judge_grants(facts: DatabaseFacts) -> Iterator[Finding]:
    granted = privileges(facts.grants)
    if _EVERYTHING in granted:
        yield _AREA.warning(
            "grants",
            "the user may do everything",
            "give the connector a user of its own, with SELECT, RELOAD, SHOW DATABASES,"
            " REPLICATION SLAVE and REPLICATION CLIENT",
        )
        return
    asked = {
        "REPLICATION SLAVE": {"REPLICATION SLAVE"},
        "REPLICATION CLIENT": {"REPLICATION CLIENT", "BINLOG MONITOR"},
        "SELECT": {"SELECT"},
        "RELOAD": {"RELOAD", "LOCK TABLES"},
    }
    missing = [name for name, any_of in asked.items() if granted.isdisjoint(any_of)]
    if missing:
        yield _AREA.problem(
            "grants",
            f"the user lacks {', '.join(missing)}",
            f"GRANT {', '.join(missing)} ON *.* TO the connector's user; if this is another user,"
            " ask with the connector's",
        )
    else:
        yield _AREA.ok("grants", first_names(granted))


def privileges(grants: Iterable[str]) -> frozenset[str]:
    """Return the privileges that statements of SHOW GRANTS name, whatever they are on."""
    found: set[str] = set()
    for match in filter(None, map(_GRANT.match, grants)):
        listed = re.sub(r"\(.*?\)", "", match[1]).split(",")
        names = {_ALIASES.get(name, name) for name in (one.strip().upper() for one in listed)}
        # Privileges on databases and tables only, none on the server.
        within = names == {_EVERYTHING} and match[2] != "*.*"
        found |= _OF_TABLES if within else names
    return frozenset(found - {"USAGE", "PROXY"})


def _judge_clock(skew_seconds: float) -> Finding:
    if abs(skew_seconds) < 1:
        return _AREA.ok("clock", "the database's agrees with this machine's")
    ahead = "ahead of" if skew_seconds > 0 else "behind"
    seen = f"the database's is {span(abs(skew_seconds))} {ahead} this machine's"
    if abs(skew_seconds) < _SKEW_WARNING:
        return _AREA.ok("clock", seen)
    return _AREA.warning("clock", seen, "let both follow a time server: freshness compares them")


def _is_on(facts: DatabaseFacts, name: str) -> bool:
    return facts.variables.get(name, "").upper() in _ON
