"""Paimon's fixtures are judged one by one in docs/formats.md, and the judgements hold."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lakesplice.formats.events import DecodeContext, declare, decode
from lakesplice.model.names import TableName
from tests.support.debezium import batch

DOCUMENT = Path(__file__).parents[2] / "docs/formats.md"
RIGHT, REFUSED = "right", "refused rightly"
# What the fixtures without schemas have to have declared; Debezium writes no date as text.
DECLARED = {
    "id": "int", "_id": "int", "name": "string", "description": "string", "weight": "double",
    "age": "int", "address": "string", "value": "string", "date": "string", "_date": "string",
    "row": "json",
}  # fmt: skip
# By MySQL's own rules, of the columns whose values Canal doesn't send as MySQL shows them.
ENUMERATED = {"_enum": "value1", "_set": "a,b"}


@cache
def _judgements() -> list[tuple[str, str, str]]:
    """Pattern, judgement and remark of each row in the document's table."""
    text = DOCUMENT.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `((?:canal|debezium)/[^`]+)` \| ([a-z ]+) \| (.*?) ?\|$", text, re.M)
    return [(pattern, judgement, remark) for pattern, judgement, remark in rows]


def _judged(name: str) -> tuple[str, str]:
    fitting = [row[1:] for row in _judgements() if fnmatch(name, row[0])]
    assert len(fitting) == 1, f"{name} has {len(fitting)} rows in {DOCUMENT.name}"
    return fitting[0]


def _records(path: Path) -> dict[TableName, list[dict[str, Any]]]:
    """The file's records by table; lines of its licence are none."""
    found: dict[TableName, list[dict[str, Any]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("{"):
            record = json.loads(line)
            told = record.get("payload", record)
            told = told.get("source") or told
            table = TableName(told.get("db") or told.get("database") or "d", told.get("table", "t"))
            found.setdefault(table, []).append(record)
    return found


def _rows(record: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """The rows that a record says there are or were last, with their columns' types."""
    if record.get("isDdl"):
        return
    if "mysqlType" in record:
        for row in record["data"]:
            yield row, record["mysqlType"]
        return
    event = record.get("payload", record)
    yield event["after"] or event["before"], {}


def _same(name: str, sent: Any, read: object, mysql_type: str) -> bool:
    if sent is None or read is None:
        return read is sent
    if name in ENUMERATED:
        return read == ENUMERATED[name]
    if isinstance(read, bytes):
        octets = sent.encode("latin-1")
        is_shape = octets[:5] == b"\0\0\0\0\1"
        padded = mysql_type.upper().startswith("BINARY")
        stored: bytes = octets[4:] if is_shape else octets.ljust(10 * padded, b"\0")
        return read == stored
    if isinstance(read, bool):
        return read == (sent in (1, "1"))
    if isinstance(read, Decimal):
        return read == Decimal(sent)
    if isinstance(read, float):
        is_single = mysql_type.upper().startswith("FLOAT")
        return bool(np.float32(read) == np.float32(sent)) if is_single else read == float(sent)
    if isinstance(read, datetime):
        return read.replace(tzinfo=None) == datetime.fromisoformat(sent)
    if isinstance(read, date):
        return str(read) == str(sent)
    if mysql_type == "TIME":
        hours, minutes, seconds = map(int, sent.split(":"))
        return read == ((hours * 60 + minutes) * 60 + seconds) * 1_000_000
    return str(read) == str(sent)


def test_every_fixture_is_as_it_is_judged(shared: Callable[..., Path]) -> None:
    root = shared("corpora", "events", "paimon")
    files = sorted(path for path in root.rglob("*.txt"))
    wrong: list[str] = []
    for path in files:
        name = path.relative_to(root).as_posix()
        judgement, remark = _judged(name)
        said = set(re.findall(r"`([a-z-]+)`", remark))
        codes: set[str] = set()
        for table, records in _records(path).items():
            values = [(None, json.dumps(record).encode()) for record in records]
            declared = declare(DECLARED) if name.startswith("debezium") else None
            decoded = decode(batch(values), DecodeContext(table, declared))
            codes |= set(map(str, decoded.dead.reason)) | {str(s.code) for s in decoded.stops}
            if judgement == RIGHT:
                wrong += [f"{name}: {why}" for why in _differing(records, decoded)]
        if judgement == RIGHT and codes:
            wrong.append(f"{name} is not right but {codes}")
        if judgement != RIGHT and not codes & said:
            wrong.append(f"{name} is refused for {codes}, not for {said}")
    assert not wrong, "\n".join(wrong)
    assert {judgement for _, judgement, _ in _judgements()} == {RIGHT, REFUSED}
    names = [path.relative_to(root).as_posix() for path in files]
    idle = [row[0] for row in _judgements() if not any(fnmatch(name, row[0]) for name in names)]
    assert idle == []


def _differing(records: list[dict[str, Any]], decoded: Any) -> Iterator[str]:
    """Say which rows weren't read, or with which other values than the text has."""
    sent = [row for record in records for row in _rows(record)]
    read: list[tuple[int, int, dict[str, Any]]] = []
    for block in decoded.blocks:
        after, before = block.after.to_pylist(), block.before.to_pylist()
        moved_away = block.before_present[:-1] & block.after_present[1:]
        moved_away &= (block.rows[:-1] == block.rows[1:]) & ~block.after_present[:-1]
        for at, row in enumerate(block.rows.tolist()):
            if at < len(moved_away) and moved_away[at]:
                continue  # the old key of an update that changed it
            read.append((row, at, after[at] if block.after_present[at] else before[at]))
    images = [image for _, _, image in sorted(read, key=lambda item: item[:2])]
    if len(images) != len(sent):
        yield f"{len(images)} rows instead of {len(sent)}"
        return
    for image, (row, types) in zip(images, sent, strict=True):
        for name, value in row.items():
            if not _same(name, value, image[name], types.get(name, "")):
                yield f"{name} is {image[name]!r} instead of {value!r}"
