"""How much anonymous memory a splice takes, in a process that does nothing else.

Called as `python -m tests.support.peak_memory <source.parquet> <step>`: every `step`-th row of the
first column gets a new value by position, through `lakesplice.splice_file`. Prints one object.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lakesplice
from benchmarks.splice.memory import watched


def _main(source: Path, step: int) -> None:
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
