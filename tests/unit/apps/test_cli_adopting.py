"""`lakesplice adopt`, with and without `--dry-run`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.command_line import CommandLine


@pytest.mark.slow
def test_a_folder_is_adopted_and_a_dry_run_tells_beforehand(
    lakesplice: CommandLine, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"a": [1, 1], "b": [1, 2]}), tmp_path / "x.parquet")
    pq.write_table(pa.table({"a": pa.array([2], pa.uint32()), "b": [1]}), tmp_path / "y.parquet")
    before = sorted(tmp_path.rglob("*"))
    would = lakesplice("adopt", tmp_path, "--key", "a,b", "--dry-run", "--format", "json")
    assert would.code == 0, would.err
    assert would.rows == [{"path": "y.parquet", "reason": "column 'a' is INT32 INT 32 unsigned"}]
    assert "2 files with 3 rows" in would.err
    assert sorted(tmp_path.rglob("*")) == before
    done = lakesplice("adopt", tmp_path, "--key", "a, b")
    assert done.code == 0, done.err
    assert "in version 0" in done.err
    assert len(lakesplice.rows("read", tmp_path)) == 3
    assert lakesplice("index", "check", tmp_path).code == 0
    assert lakesplice("adopt", tmp_path, "--key", "a,b").code == 2


def test_a_key_that_repeats_is_reported_and_nothing_is_done(
    lakesplice: CommandLine, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"a": [1, 1], "b": [1, 2]}), tmp_path / "x.parquet")
    ended = lakesplice("adopt", tmp_path, "--key", "a")
    assert ended.code == 2
    assert "rows=1 examples=[{'a': 1}]" in ended.err
    assert lakesplice("adopt", tmp_path, "--key", "a,,b").code == 2
