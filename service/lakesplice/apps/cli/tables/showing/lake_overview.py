"""The state of a lake, for people: a line per table in 80 columns, and why some tables are
stopped.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from lakesplice.apps.cli.output import how_fresh, print_table, visible
from lakesplice.model.driver_status import FED_BY_HAND, DriverStatus, TopicState
from lakesplice.model.moments import EpochMs, age, utc_time

Row = dict[str, Any]

_COLUMNS = ("table", "state", "rows", "lag", "fresh", "waiting", "dead")
# Shown only if some table has a value, to save width.
_NOTE = "note"
_NAMED_MAX = 3
_QUIET = (TopicState.RUNNING.value, TopicState.EXCLUDED.value, FED_BY_HAND)
# A driver publishes every ten seconds.
_SILENT_SECONDS = 60.0
# A mirror follows every minute (`iceberg.every`) unless the settings say otherwise.
_MIRROR_SECONDS = 600.0


def print_overview(
    rows: Sequence[Row],
    status: DriverStatus | None,
    now_ms: EpochMs,
    lake: str,
    unheard: int | None = None,
) -> None:
    """Print a lake's tables to standard output, then each topic that doesn't continue, with its
    full reason, and each setting that changes values. Notes that concern no table go to standard
    error. `unheard` is the generation of a later driver, which has reported nothing yet.
    """
    lines = [_line(row) for row in rows]
    if rows:
        noted = any(line[_NOTE] for line in lines)
        print_table(lines, (*_COLUMNS, _NOTE) if noted else _COLUMNS, sys.stdout)
    elif status is None or status.topics:
        print(f"no tables in {lake}; they are looked for as DATABASE/TABLE in it", file=sys.stderr)
    troubles = (
        *_troubles(rows, now_ms),
        *_gaps(rows),
        *_missing(rows, now_ms),
        *_differing(rows, now_ms),
        *_mirrors(rows),
    )
    for text in (*troubles, *_suspects(rows, now_ms)):
        print(_wrapped(text))
    until = None if status is None else status.complete_until({row["table"] for row in rows})
    if until is not None:
        moment = utc_time(until).isoformat(timespec="seconds")
        print(f"all tables are complete up to {moment}", file=sys.stderr)
    for text in _of_driver(status, now_ms, unheard):
        print(_wrapped(text), file=sys.stderr)


def _line(row: Row) -> Row:
    counted = row.get("rows")
    most = row.get("physical_rows")
    rows = None if most is None else f"{counted:,}" if counted is not None else f"≤{most:,}"
    lag = row.get("lag")
    return {
        "table": row["table"] or f"(topic) {row['topic']}",
        "state": row["state"],
        "rows": rows,
        "lag": None if lag is None else f"{lag:,}",
        "fresh": how_fresh(row),
        "waiting": row.get("waiting"),
        "dead": row.get("dead"),
        _NOTE: " ".join(_notes(row)) or None,
    }


def _notes(row: Row) -> list[str]:
    late = (row.get("lateness") or 0.0) > 1
    gaps = ["gap"] if row.get("gaps") else []
    differs = ["differs"] if (row.get("verified") or {}).get("different") else []
    return [
        *(["late"] if late else []),
        *gaps,
        *differs,
        *(["missing"] if row.get("missing_changes") else []),
        *(["mirror"] if _mirror_lags(row) else []),
        *(["settings"] if row["suspect_settings"] else []),
    ]


def _troubles(rows: Iterable[Row], now_ms: EpochMs) -> list[str]:
    found = []
    for row in rows:
        several = len(row["topics"]) > 1
        for one in row["topics"] or [row]:
            if one["state"] in _QUIET or not one.get("detail"):
                continue
            name = one["topic"] if several or not row["table"] else row["table"]
            found.append(f"{name}: {_why(one, now_ms)}")
        if row["state"] == "unreadable" and row["topics"]:
            found.append(f"{row['table']}: {_why(row, now_ms)}")
    return ["", *found] if found else []


def _gaps(rows: Iterable[Row]) -> list[str]:
    """Print which records each table passed over, only some if there are many."""
    lines = []
    for row in rows:
        found = row.get("gaps") or ()
        more = [f"{len(found) - _NAMED_MAX} more"] if len(found) > _NAMED_MAX else []
        if found:
            offsets = ", ".join([*map(visible, found[:_NAMED_MAX]), *more])
            lines.append(f"{row['table']}: lacks records that were passed over: {offsets}")
    return ["", *lines] if lines else []


def _differing(rows: Iterable[Row], now_ms: EpochMs) -> list[str]:
    """Tell which tables were proven to differ from their database."""
    lines = []
    for row in rows:
        found = row.get("verified") or {}
        if found.get("different"):
            ago = age(_seconds_since(found["ended"], now_ms))
            lines.append(
                f"{row['table']}: {found['different']:,} rows differed from the database {ago} ago;"
                " `lakesplice verify` says which"
            )
    return ["", *lines] if lines else []


def _missing(rows: Iterable[Row], now_ms: EpochMs) -> list[str]:
    """Tell in which tables changes are probably missing."""
    lines = []
    for row in rows:
        found = row.get("missing_changes")
        if found:
            ago = age(_seconds_since(found["seen"], now_ms))
            lines.append(
                f"{row['table']}: changes are probably missing in its topics, before"
                f" {found['changes']:,} others, the last one found {ago} ago; `lakesplice verify`"
                " says which rows differ"
            )
    return ["", *lines] if lines else []


def _mirror_lags(row: Row) -> bool:
    """Whether a table's Iceberg mirror fails, or lacks something for longer than is usual."""
    mirror = row.get("mirror") or {}
    return bool(mirror.get("failure")) or (mirror.get("behind_seconds") or 0.0) > _MIRROR_SECONDS


def _mirrors(rows: Iterable[Row]) -> list[str]:
    """Tell which Iceberg mirrors don't follow, and why."""
    lines = []
    for row in rows:
        if not _mirror_lags(row):
            continue
        mirror = row["mirror"]
        shown = "no version" if mirror["version"] is None else f"version {mirror['version']:,}"
        of = f" of {row['version']:,}" if row.get("version") is not None else ""
        behind = mirror["behind_seconds"]
        long = "" if behind is None else f", behind for {age(behind)}"
        why = f": {visible(mirror['failure'])}" if mirror["failure"] else ""
        lines.append(f"{row['table']}: its Iceberg mirror shows {shown}{of}{long}{why}")
    return ["", *lines] if lines else []


def _suspects(rows: Iterable[Row], now_ms: EpochMs) -> list[str]:
    """Show each setting once, with some of the tables whose events show it."""
    tables: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    seen: dict[tuple[str, str], str] = {}
    for row in rows:
        for one in row["suspect_settings"]:
            setting = one["name"], one["detail"]
            tables[setting].append(row["table"] or row["topic"])
            seen[setting] = max(seen.get(setting, ""), one["seen"])
    lines = []
    for (name, detail), found in sorted(tables.items()):
        more = len(found) - _NAMED_MAX
        shown_by = ", ".join([*found[:_NAMED_MAX], *([f"{more} more"] if more > 0 else [])])
        ago = age(_seconds_since(seen[name, detail], now_ms))
        lines.append(f"setting {visible(name)}: {visible(detail)} ({shown_by}; {ago} ago)")
    return ["", *lines] if lines else []


def _why(one: Row, now_ms: EpochMs) -> str:
    code = f" ({one['code']})" if one.get("code") else ""
    since = one.get("since")
    long = f" (for {age(_seconds_since(since, now_ms))})" if since else ""
    at = f" (at record {one['record']})" if one.get("record") else ""
    return f"{one['state']}{code}: {visible(one['detail'])}{at}{long}"


def _seconds_since(moment: str, now_ms: EpochMs) -> float:
    return max(0.0, now_ms / 1000 - datetime.fromisoformat(moment).timestamp())


def _of_driver(status: DriverStatus | None, now_ms: EpochMs, unheard: int | None) -> list[str]:
    lines = []
    if unheard is not None:
        lines.append(
            f"the service of generation {unheard} has the lake, but has not reported: it starts, or"
            " can't write to the lake; its page and its log say more"
        )
    if status is None:
        return lines
    if not status.topics:
        others = ", ".join(map(visible, status.other_topics)) or "no topics at all"
        pattern = visible(status.pattern)
        lines.append(f"no topic matches kafka.topic_pattern {pattern}; the broker has {others}")
    silent = max(0.0, (now_ms - status.written_ms) / 1000)
    if unheard is not None:
        lines.append(f"the states are from {age(silent)} ago")
    elif not status.running:
        lines.append(
            f"no service runs: the last one ended {age(silent)} ago; the states are from that time"
        )
    elif silent > _SILENT_SECONDS:
        lines.append(f"the driver last reported {age(silent)} ago; the states are from that time")
    return lines


def _wrapped(text: str) -> str:
    """Wrap a text to a terminal's width; elsewhere it stays one line."""
    if not sys.stdout.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return textwrap.fill(text, width, subsequent_indent="  ", break_on_hyphens=False)
