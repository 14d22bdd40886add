"""Splices in a separate process, with limits of memory and time, since a damaged file may end the
process.

Called as `python -m tests.support.bounded_splice <job.json>`, which `run` does. If the process
died, the last file without an answer was the cause; the next process continues after it.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.support.machine import ROOT

NO_CHANGE, ONE_ROW = "no change", "one row"
_READ_BYTES_MAX = 1 << 28


@dataclass(frozen=True)
class Result:
    """How it ended: the way it was written and what readers saw wrong, or the error, or a death."""

    way: str = ""
    columns: tuple[str, ...] = ()
    wrongs: tuple[str, ...] = ()
    error: str = ""
    message: str = ""
    died: str = ""


def run(
    files: Sequence[Path], scratch: Path, what: str, *, bytes_max: int, seconds_max: int
) -> dict[Path, Result]:
    """Splice each file with no change, or with one row set to null in every column that may be.

    `bytes_max` bounds what one splice may add to the process's address space, `seconds_max` its
    time and its readers'.
    """
    results: dict[Path, Result] = {}
    answers = scratch / "answers.jsonl"
    while left := [file for file in files if file not in results]:
        answers.write_text("")
        job = {
            "files": [str(file) for file in left],
            "scratch": str(scratch),
            "what": what,
            "bytes_max": bytes_max,
            "seconds_max": seconds_max,
            "answers": str(answers),
        }
        (scratch / "job.json").write_text(json.dumps(job))
        ended = _start(scratch / "job.json", seconds_max * len(left))
        lines = answers.read_text().splitlines()
        for file, line in zip(left, lines, strict=False):
            results[file] = _result(json.loads(line))
        if len(lines) < len(left):
            results[left[len(lines)]] = Result(died=ended)
    return results


def _start(job: Path, seconds_max: int) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.bounded_splice", str(job)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'service'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=seconds_max,
        check=False,
    )
    return f"exit code {done.returncode}: {done.stderr[-1500:]}"


def _result(fields: dict[str, Any]) -> Result:
    lists = {name: tuple(fields.get(name, ())) for name in ("columns", "wrongs")}
    return Result(**{**fields, **lists})


def _main(job_path: Path) -> None:
    job = json.loads(job_path.read_text())
    scratch = Path(job["scratch"])
    with Path(job["answers"]).open("a") as answers:
        for file in job["files"]:
            # Its default is to end the process, whatever native code it is in.
            signal.alarm(job["seconds_max"])
            result = _one(Path(file), scratch, job["what"], job["bytes_max"])
            answers.write(json.dumps(asdict(result)) + "\n")
            answers.flush()


def _one(source: Path, scratch: Path, what: str, bytes_max: int) -> Result:
    from lakesplice.errors import LakespliceError
    from tests.support.splicing import SPLICE, written

    target = scratch / "spliced.parquet"
    try:
        with _bounded(bytes_max):
            columns, row = _edited(source, what)
            way = written(SPLICE, source, _edits(source, columns, row), target)
        wrongs = _wrongs(source, target, columns, row)
    except LakespliceError as error:
        return Result(error=type(error).__name__, message=str(error))
    return Result(way, tuple(columns), tuple(wrongs))


@contextmanager
def _bounded(bytes_max: int) -> Iterator[None]:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + bytes_max, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _edited(source: Path, what: str) -> tuple[list[str], int]:
    """The columns that may be null, and the row in the middle."""
    import pyarrow as pa

    from lakesplice.splicing.structures.footer import read_footer

    with pa.memory_map(str(source)) as opened:
        footer = read_footer(opened, source.name)
    if what == NO_CHANGE or not footer.num_rows:
        return [], 0
    names = [leaf.path[0] for leaf in footer.leaves if leaf.flat and leaf.nullable]
    return [name for name in names if names.count(name) == 1], footer.num_rows // 2


def _edits(source: Path, columns: list[str], row: int) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from lakesplice.splicing.whole_rewrite import reading

    if not columns:
        return _nulls(pa.schema([]), columns, row)
    with pa.memory_map(str(source)) as opened, reading(source.name, "schema"):
        return _nulls(pq.ParquetFile(opened, pre_buffer=False).schema_arrow, columns, row)


def _nulls(schema: Any, columns: list[str], row: int) -> Any:
    import numpy as np
    import pyarrow as pa

    from lakesplice.planning.rows.edits import ColumnEdit, Edits

    rows = np.array([row])
    kinds = {name: schema.field(name).type for name in columns}
    return Edits(rows, {name: ColumnEdit(rows, pa.nulls(1, kind)) for name, kind in kinds.items()})


def _wrongs(source: Path, target: Path, columns: list[str], row: int) -> Iterator[str]:
    """What each reader of the source makes of the target, against its own view of the source."""
    import pyarrow as pa

    from lakesplice.splicing.structures.footer import read_footer
    from lakesplice.splicing.whole_rewrite import edited
    from tests.support.parquet_readers import IN_PROCESS
    from tests.support.reader_matrix import attempt, difference

    with pa.memory_map(str(source)) as opened:
        footer = read_footer(opened, source.name)
    if sum(group.total_byte_size for group in footer.row_groups) > _READ_BYTES_MAX:
        return
    for reader in IN_PROCESS:
        before = attempt(reader, source)
        # Some go by row counts that old writers got wrong; a splice puts them right.
        if isinstance(before, str) or before.num_rows != footer.num_rows:
            continue
        after = attempt(reader, target)
        if isinstance(after, str):
            yield f"{reader.name}: {after}"
            continue
        seen = difference(edited(before, _nulls(before.schema, columns, row)), after)
        if seen is not None:
            yield f"{reader.name}: {seen}"


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
