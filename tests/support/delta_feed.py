"""Compares Delta's change feed of a table with its rows: applied to a version, it gives each later
one.

Code here and deltalake read it according to the protocol; neither shares code with the writer.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from lakesplice.model.names import CHANGE_TYPE, COMMIT_TIME, COMMIT_VERSION, IS_DELETED
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import oldest_version, open_snapshot
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table

Images = list[dict[str, Any]]
_ADDS = ("insert", "update_postimage")
_DERIVED = {"add": "insert", "remove": "delete"}


def load_feed(root: Path, first: int, last: int | None = None) -> Images:
    """What deltalake reads of the versions, without images of rows that readers don't see."""
    found = pa.table(DeltaTable(str(root)).load_cdf(first, last).read_all()).to_pylist()
    return [
        {name: value for name, value in image.items() if name != COMMIT_TIME}
        for image in found
        if not image[IS_DELETED]
    ]


def read_feed(root: Path, first: int, last: int) -> Images:
    """What the log says of the versions: change files where a commit has some, else the rows of
    its other files.
    """
    return [image for version in range(first, last + 1) for image in _told(root, version)]


def _told(root: Path, version: int) -> Images:
    lines = (root / f"_delta_log/{version:020d}.json").read_text().splitlines()
    actions = [next(iter(json.loads(line).items())) for line in lines]
    derived = not any(name == "cdc" for name, _ in actions)
    told = []
    for name, action in actions:
        if (derived and name in _DERIVED and action["dataChange"]) or name == "cdc":
            said = {CHANGE_TYPE: _DERIVED[name]} if derived else {}
            told += [{**row, **said, COMMIT_VERSION: version} for row in _rows(root, action)]
    return [image for image in told if not image.get(IS_DELETED)]


def _rows(root: Path, action: dict[str, Any]) -> Images:
    rows = pq.ParquetFile(root / unquote(action["path"])).read().to_pylist()
    return [row | action["partitionValues"] for row in rows]


def require_delta_feed(store: Store, root: Path) -> int:
    """Rows of each version that still has a feed and the feed after it are the rows of each later
    one: by key, deletes first, and as multisets; return how many images were read.
    """
    snapshot = open_snapshot(store)
    feed, newest = snapshot.manifest.feed, snapshot.version
    # A clean-up that had no files to delete left no commit, so the log may begin later.
    oldest = max(snapshot.manifest.retention.retained_from, oldest_version(store))
    if feed is None or max(feed.since, oldest) == newest:
        return 0
    first = max(feed.since, oldest)
    told = read_feed(root, first + 1, newest)
    if not any("%" in path for path in snapshot.log.adds):  # deltalake doesn't decode such paths
        middle = (first + 1 + newest) // 2
        part = [image for image in told if image[COMMIT_VERSION] >= middle]
        require_same(load_feed(root, middle, newest), part)
    shown = Table(store).schema.names or ["id"]
    rows: dict[Any, dict[str, Any]] = {}
    for version in range(first, newest + 1):
        table = Table(store, version)
        names = [name for name in table.schema.names if name in shown]
        now = table.read(View.READ_OPTIMISED, columns=names).to_pylist() if names else []
        names = names or ["id"]  # a table that was reset has no columns
        if version > first:
            before = [{name: row.get(name) for name in names} for row in rows.values()]
            images = [image for image in told if image[COMMIT_VERSION] == version]
            _require_step(before, images, now, names)
        rows = {row["id"]: row for row in now}
    return len(told)


def _require_step(before: Images, images: Images, after: Images, names: Sequence[str]) -> None:
    rows = Counter(_values(before, names))
    for image, values in zip(images, _values(images, names), strict=True):
        rows[values] += 1 if image[CHANGE_TYPE] in _ADDS else -1
    assert {row: count for row, count in rows.items() if count} == Counter(_values(after, names))
    by_key = {row["id"]: row for row in before}
    for image in images:
        if image[CHANGE_TYPE] == "delete":
            by_key.pop(image["id"], None)
    for image in images:
        if image[CHANGE_TYPE] in _ADDS:
            by_key[image["id"]] = {name: image.get(name) for name in names}
    assert by_key == {row["id"]: row for row in after}


def _values(rows: Iterable[dict[str, Any]], names: Sequence[str]) -> list[tuple[Any, ...]]:
    return [tuple(row.get(name) for name in names) for row in rows]


def require_same(found: Images, meant: Images) -> None:
    """A reader gives a column that a file lacks as null."""
    names = sorted({name for image in found for name in image})
    filled = [{name: image.get(name) for name in names} for image in meant]
    assert Counter(map(repr, _values(found, names))) == Counter(map(repr, _values(filled, names)))
