"""Independent readers decode docs/format.md and its worked example."""

from __future__ import annotations

import io
import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import avro.datafile
import avro.io
import polars as pl
import pyarrow.parquet as pq
import pytest
import xxhash

import lakesplice
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.parking import ParkCode
from lakesplice.testing import worked_example
from tests.support.independent import blake3_of_one_block, digest, text_word
from tests.support.machine import ROOT

FORMAT = ROOT / "docs" / "format.md"
EXAMPLE = ROOT / "docs" / "format-example.md"
_FILE = re.compile(r"^## `(?P<path>[^`]+)`\n\n(?P<size>\d+) bytes\.\n\n", re.MULTILINE)
_BLOCK = re.compile(r"```(json|hex)\n(.*?)```", re.DOTALL)
INSERTED = [(1, "bolt", 5), (2, "nut", None), (3, "washer", 7)]
LATER = [(1, "bolt", 6), (2, "nut", None)]


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """The files by their paths, as the document has them."""
    text = EXAMPLE.read_text()
    found = {}
    for match in _FILE.finditer(text):
        block = _BLOCK.match(text, match.end())
        assert block is not None, match["path"]
        kind, content = block.groups()
        data = content.encode() if kind == "json" else bytes.fromhex(content)
        assert len(data) == int(match["size"]), match["path"]
        found[match["path"]] = data
    return found


def commit(files: dict[str, bytes], version: int) -> list[dict[str, Any]]:
    lines = files[f"_delta_log/{version:020d}.json"].decode().splitlines()
    return [json.loads(line) for line in lines]


def manifest(files: dict[str, bytes], version: int) -> dict[str, Any]:
    pointer = json.loads(commit(files, version)[-1]["domainMetadata"]["configuration"])
    assert (pointer["format"], pointer["version"]) == (1, version)
    found: dict[str, Any] = json.loads(checked(files, pointer["manifest"]))
    return found


def checked(files: dict[str, bytes], ref: dict[str, Any]) -> bytes:
    data = files[ref["path"]]
    assert (len(data), xxhash.xxh3_128_hexdigest(data)) == (ref["bytes"], ref["checksum"])
    return data


def base_rows(files: dict[str, bytes], version: int) -> list[dict[str, Any]]:
    (file,) = manifest(files, version)["files"]
    data = files[file["path"]]
    tail_bytes, tail_checksum = file["tail"]
    assert len(data) == file["bytes"]
    assert xxhash.xxh3_128_hexdigest(data[-tail_bytes:]) == tail_checksum
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(data)).to_pylist()
    assert [len(rows)] == [count for _, count in file["segments"]]
    return rows


def records(data: bytes) -> list[dict[str, Any]]:
    with avro.datafile.DataFileReader(io.BytesIO(data), avro.io.DatumReader()) as reader:
        return list[Any](reader)


def values(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["id"], row["name"], row["n"]


def row_digest(files: dict[str, bytes], row: dict[str, Any]) -> int:
    columns = manifest(files, 1)["schema"]["columns"]
    words = {
        f"{c['id']}:{c['type']}:{c['source_type']}": (
            text_word(row[c["name"]]) if c["type"] == "string" else row[c["name"]]
        )
        for c in columns
        if row[c["name"]] is not None
    }
    return digest(words)


def index(run: bytes) -> Iterator[tuple[bytes, tuple[int, int]]]:
    """Key hash and address of each entry of a run."""
    entries, groups, bits, magic = struct.unpack("<QQI36x8s", run[-64:])
    assert run[:64] == b"LKSPRUN1".ljust(64, b"\0")
    assert magic == b"LKSPRUN1"
    fences_at = aligned(64 + 24 * entries)
    groups_at = aligned(fences_at + 4 * (2**bits + 1))
    assert aligned(groups_at + 8 * groups) + 64 == len(run)
    table = struct.unpack_from(f"<{groups}q", run, groups_at)
    fences = struct.unpack_from(f"<{2**bits + 1}I", run, fences_at)
    highs = []
    for at in range(entries):
        high, low, address = struct.unpack_from("<QQQ", run, 64 + 24 * at)
        highs.append(high)
        yield struct.pack(">QQ", high, low), (table[address >> 32], address & 0xFFFFFFFF)
    for number, fence in enumerate(fences):
        assert fence == sum(high >> (64 - bits) < number for high in highs)


def aligned(offset: int) -> int:
    return -(-offset // 64) * 64


def test_the_log_says_what_happened(files: dict[str, bytes]) -> None:
    infos = [commit(files, version)[0]["commitInfo"] for version in range(4)]
    operations = ["CREATE TABLE", "INGEST", "INGEST", "SPLICE"]
    assert [info["operation"] for info in infos] == operations
    times = [info["inCommitTimestamp"] for info in infos]
    assert sorted(set(times)) == times
    parameters = [info["operationParameters"] for info in infos]
    assert [json.loads(p["offsets"]) for p in parameters] == [{"0": at} for at in (0, 3, 7, 7)]
    assert [json.loads(p["viewFloor"]) for p in parameters] == [{"0": at} for at in (0, 3, 3, 7)]
    protocol = next(action["protocol"] for action in commit(files, 0) if "protocol" in action)
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (1, 7)
    assert "lakesplice" in protocol["writerFeatures"]


def test_log_and_manifest_name_the_same_base_files(files: dict[str, bytes]) -> None:
    live: set[str] = set()
    for version in range(4):
        for action in commit(files, version):
            live -= {action["remove"]["path"]} if "remove" in action else set()
            live |= {action["add"]["path"]} if "add" in action else set()
        assert {file["path"] for file in manifest(files, version)["files"]} == live


def test_base_files_hold_the_rows_with_position_and_digest(files: dict[str, bytes]) -> None:
    rows = base_rows(files, 1)
    assert [values(row) for row in rows] == INSERTED
    assert [row["_row_digest"] for row in rows] == [row_digest(files, row) for row in rows]
    positions = [(row["_position_file"], row["_position_offset"]) for row in rows]
    assert positions == sorted(set(positions))
    assert [offset >> 1 & 0x1FFFFF for _, offset in positions] == [0, 1, 2], "rows of one event"
    assert [offset & 1 for _, offset in positions] == [1, 1, 1]
    after = base_rows(files, 3)
    assert [values(row) for row in after if not row["_is_deleted"]] == LATER
    assert [row["_row_digest"] for row in after if row["_is_deleted"]] == [None]


def test_the_row_index_leads_from_each_key_to_its_row(files: dict[str, bytes]) -> None:
    (ref,) = manifest(files, 1)["runs"]
    entries = dict(index(checked(files, ref)))
    assert len(entries) == ref["entries"] == 3
    assert list(entries) == sorted(entries)
    (file,) = manifest(files, 1)["files"]
    for place, (key, *_) in enumerate(INSERTED):
        hashed = blake3_of_one_block(struct.pack(">Iq", 8, key))[:16]
        assert entries[hashed] == (int(file["segments"][0][0], 16), place)


def test_the_delta_over_the_base_file_is_the_real_time_view(files: dict[str, bytes]) -> None:
    state = manifest(files, 2)
    (ref,) = state["deltas"]
    changes: list[dict[str, Any]] = pq.read_table(io.BytesIO(checked(files, ref))).to_pylist()
    assert state["format"] == 12
    (group,) = ref["waiting"]
    assert ref["waiting"] == {group: len(changes)}
    assert {change["_group"] for change in changes} == {int(group, 16)}
    rows = base_rows(files, 2)
    for change in changes:
        row = rows[change["_row"]]
        assert change["id"] == row["id"]
        assert change["_before_digest"] == row["_row_digest"]
        later = ("_position_file", "_position_offset")
        assert [change[name] for name in later] > [row[name] for name in later]
        if change["_op"] == 2:
            row["_is_deleted"] = True
            continue
        assert change["_changed"] == b"\x04", "column 2, that is n, and no other"
        row["n"] = change["n"]
        assert change["_row_digest"] == row_digest(files, row)
    assert [values(row) for row in rows if not row["_is_deleted"]] == LATER
    assert manifest(files, 3)["deltas"] == []


def test_the_dead_letter_keeps_the_record(files: dict[str, bytes]) -> None:
    (ref,) = manifest(files, 2)["dead_letters"]
    (letter,) = records(checked(files, ref))
    assert (letter["topic"], letter["partition"], letter["offset"]) == ("shop.shop.items", 0, 6)
    assert (letter["value"], letter["reason"]) == (b"{no JSON", "not-json")


def test_the_example_read_by_us_and_by_another_engine(
    files: dict[str, bytes], tmp_path: Path
) -> None:
    for path, data in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    for version, rows in ((0, []), (1, INSERTED), (2, LATER), (3, LATER)):
        seen = lakesplice.Table.open(tmp_path, version=version).read().to_pylist()
        assert [values(row) for row in seen] == rows
    for version, rows in ((1, INSERTED), (2, INSERTED), (3, LATER)):
        frame = pl.scan_delta(str(tmp_path), version=version).filter(~pl.col("_is_deleted"))
        assert frame.select("id", "name", "n").collect().rows() == rows


def test_the_code_writes_the_bytes_that_the_document_shows() -> None:
    assert EXAMPLE.read_text() == worked_example.document(), (
        "write it anew, and say in CHANGELOG.md what changed on disk"
    )


def test_the_document_names_every_code() -> None:
    text = FORMAT.read_text()
    for code in (*ParkCode, *DeadReason):
        assert f"`{code}`" in text, code
