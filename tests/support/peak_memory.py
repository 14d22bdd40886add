"""How much anonymous memory a splice takes, in a process that does nothing else.

Called as `python -m tests.support.peak_memory <source.parquet> <step>`: every `step`-th row of the
first column gets a new value by position, through `lakesplice.splice_file`. Prints one object.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def anonymous_bytes() -> int:
    """What this process holds that no file backs."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "RssAnon":
            return int(value.split()[0]) * 1024
    raise AssertionError("no RssAnon")


@contextmanager
def watched() -> Iterator[list[int]]:
    """Yield a list whose last entry is the highest seen, a few hundred times a second."""
    seen, over = [anonymous_bytes()], threading.Event()

    def watch() -> None:
        while not over.wait(0.003):
            seen[0] = max(seen[0], anonymous_bytes())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def _main(source: Path, step: int) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    import lakesplice

    schema, rows = pq.read_schema(source), pq.read_metadata(source).num_rows
    at = np.arange(0, rows, step)
    name, kind = schema.names[0], schema.types[0]
    values = pa.array(at % 100).cast(kind)
    target = source.with_name("target.parquet")
    with watched() as seen:
        changes = pa.table({"row": at, name: values})
        done = lakesplice.splice_file(source, changes, target, by_position="row", threads=2)
    print(
        json.dumps(
            {
                "peak": seen[0],
                "whole": done.encoded_whole.get(name),
                "rewritten": done.rewritten,
                "seconds": done.seconds,
                "bytes": done.bytes_before,
            }
        )
    )


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]))
