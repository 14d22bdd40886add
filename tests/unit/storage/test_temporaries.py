"""Deleting temporary files of the local store does no harm, whoever they belong to."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.errors import StorageError
from lakesplice.model.moments import EpochMs
from lakesplice.storage.local import TEMPORARY, LocalStore
from lakesplice.storage.stores import drop_temporaries

EVERY_MS = 1 << 60


def test_temporaries_are_dropped_by_age_and_nothing_else_is(tmp_path: Path) -> None:
    lake = LocalStore(tmp_path)
    table = lake.within("shop/goods")
    assert table.put_new("base/a", b"rows")
    for folder in (tmp_path, tmp_path / "shop/goods"):
        (folder / TEMPORARY).mkdir(parents=True, exist_ok=True)
        (folder / TEMPORARY / "left").write_bytes(b"half")
    assert drop_temporaries(table, EpochMs(0)) == 0
    assert drop_temporaries(table, EpochMs(EVERY_MS)) == 2
    assert drop_temporaries(table, EpochMs(EVERY_MS)) == 0
    assert table.read("base/a") == b"rows"


def test_a_writer_whose_temporary_was_dropped_has_written_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    link = Path.hardlink_to

    def dropped_before(target: Path, source: Path) -> None:
        assert drop_temporaries(store, EpochMs(EVERY_MS)) == 1
        link(target, source)

    monkeypatch.setattr(Path, "hardlink_to", dropped_before)
    with pytest.raises(StorageError):
        store.put_new("a", b"bytes")
    assert store.size("a") is None
    monkeypatch.undo()
    assert store.put_new("a", b"bytes")
