"""Decoding of change events beside the floor: pyarrow.json reading the same payloads into typed
columns.

Run: python -m benchmarks.decode [--rows N] [--repeats N]. Seeded; processor time of one thread
each; medians. Events
are of 23 columns and 1.4 kB, both images, two columns changed. The malformed ones are what broken
producers send: half of them no JSON (cut off, empty, a raw line break, text), half JSON with a
wrong type or a number out of range. The floor can't read those, so it is measured on the sound
ones. At last events of the wide table that contain their schema are decoded beside the same events
without it.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import json as arrow_json

from benchmarks.service import COLUMNS
from lakesplice.formats.events import DecodeContext, declare, decode
from lakesplice.model.names import TableName
from lakesplice.testing.shop import WideTable

SEED = 7
MALFORMED_SHARES = (0.0, 0.01)
# With its schema an event has 8 kB.
_SCHEMA_ROWS_MAX = 20_000
TYPES = {
    "id": "long",
    **{f"quantity_{n}": "integer" for n in range(5)},
    **{f"reference_{n}": "long" for n in range(5)},
    **{f"price_{n}": "decimal(12,2)" for n in range(4)},
    **{f"label_{n}": "string" for n in range(4)},
    "weight": "double",
    "sold": "date",
    "created": "timestamp",
    "changed": "timestamp_micros",
}
JSON_TYPES = {
    **dict.fromkeys(("integer", "long", "date", "timestamp_micros"), pa.int64()),
    "double": pa.float64(),
}


def _value(name: str, kind: str, chance: random.Random) -> object:
    if name != "id" and chance.random() < 0.05:
        return None
    match kind:
        case "integer" | "date":
            return chance.randrange(20_000)
        case "long":
            return chance.randrange(10_000_000_000)
        case "double":
            return chance.random()
        case "string":
            return f"label {chance.randrange(1_000_000)}"
        case "timestamp":
            return f"2026-11-{chance.randrange(1, 30):02}T02:30:00.{chance.randrange(10**6):06}Z"
        case "timestamp_micros":
            return 1_795_247_776_000_000 + chance.randrange(10**9)
    unscaled = chance.randrange(-(10**9), 10**9)
    return base64.b64encode(unscaled.to_bytes(4, "big", signed=True)).decode()


def _event(row: int, chance: random.Random) -> dict[str, Any]:
    before = {name: _value(name, kind, chance) for name, kind in TYPES.items()}
    before["id"] = row
    after = {**before, "quantity_0": chance.randrange(100), "price_0": "JxA="}
    source = {
        "version": "3.5.0.Final", "connector": "mariadb", "name": "bench",
        "ts_ms": 1795247776000, "snapshot": "false", "db": "shop", "sequence": None,
        "ts_us": 1795247776000000, "ts_ns": 1795247776000000000, "table": "sales",
        "server_id": 223344, "gtid": f"0-223344-{row}", "file": "binlog.000001",
        "pos": 1000 + row * 300, "row": 0, "thread": None, "query": None,
    }  # fmt: skip
    return {
        "before": before, "after": after, "source": source, "transaction": None, "op": "u",
        "ts_ms": 1795247776558, "ts_us": 1795247776558242, "ts_ns": 1795247776558242987,
    }  # fmt: skip


def _malformed(event: dict[str, Any], kind: int) -> bytes:
    text = as_json(event)
    after = dict(event["after"])
    wrong = {"quantity_1": "many"} if kind < 6 else {"label_1": 5} if kind < 7 else {"sold": 10**12}
    broken = (text[: len(text) // 2], b"", text.replace(b"bench", b"ben\nch"), b"no JSON")
    return broken[kind] if kind < len(broken) else as_json({**event, "after": {**after, **wrong}})


def as_json(event: Mapping[str, object]) -> bytes:
    """Return the event as producers write it."""
    return json.dumps(event, separators=(",", ":")).encode()


@dataclass(frozen=True)
class EventSample:
    """Events of a format: that of a row, one of its eight malformed kinds, and a row's key."""

    event: Callable[[int, random.Random], dict[str, Any]]
    malformed: Callable[[dict[str, Any], int], bytes]
    key: Callable[[int], bytes]

    def records(self, rows: int, share: float) -> tuple[pa.RecordBatch, int]:
        """Return a batch of events, and how many of them are malformed."""
        chance = random.Random(SEED)
        values, bad = [], 0
        for row in range(rows):
            event = self.event(row, chance)
            if chance.random() < share:
                values.append(self.malformed(event, bad % 8))
                bad += 1
            else:
                values.append(as_json(event))
        columns = {
            "offset": pa.array(range(rows), pa.int64()),
            "key": pa.array(map(self.key, range(rows)), pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
        return pa.record_batch(columns), bad


SAMPLE = EventSample(_event, _malformed, lambda row: b'{"id":%d}' % row)


def floor(text: bytes) -> pa.Table:
    """Read payloads, a line each, into columns of JSON's own types."""
    image = pa.struct([(name, JSON_TYPES.get(kind, pa.string())) for name, kind in TYPES.items()])
    texts = ("version", "connector", "name", "snapshot", "db", "sequence", "table", "gtid", "file")
    numbers = ("ts_ms", "ts_us", "ts_ns", "server_id", "pos", "row", "thread")
    source = pa.struct(
        [(name, pa.string()) for name in (*texts, "query")] + [(n, pa.int64()) for n in numbers]
    )
    schema = pa.schema(
        [("before", image), ("after", image), ("source", source), ("transaction", pa.null()),
         ("op", pa.string()), ("ts_ms", pa.int64()), ("ts_us", pa.int64()), ("ts_ns", pa.int64())]
    )  # fmt: skip
    return arrow_json.read_json(
        pa.BufferReader(text),
        arrow_json.ReadOptions(use_threads=False, block_size=4 << 20),
        arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )


def rates(rows: int, works: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Run the works in turn, so that a noisy neighbour disturbs all of them alike."""
    seconds: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, taken in zip(works, seconds, strict=True):
            started = time.process_time()
            work()
            taken.append(time.process_time() - started)
    return [rows / statistics.median(taken) for taken in seconds]


def compare(
    types: Mapping[str, str],
    sample: EventSample,
    floor: Callable[[bytes], object],
    arguments: Sequence[str] | None = None,
) -> None:
    """Print a line per share of malformed events: the decoder's rate, and the floor's."""
    options = _options(arguments)
    context = DecodeContext(TableName("shop", "sales"), declare(types))
    sound, _ = sample.records(options.rows, 0.0)
    text = b"\n".join(value.as_py() for value in sound["value"])
    print(f"{options.rows} events of {len(text) // options.rows} bytes")
    for share in MALFORMED_SHARES:
        batch, bad = sample.records(options.rows, share)
        decoded = decode(batch, context)
        assert sum(map(len, decoded.blocks)) == options.rows - bad, "a sound event was lost"
        works = (lambda batch=batch: decode(batch, context), lambda: floor(text))
        ours, least = rates(options.rows, works, options.repeats)
        print(
            f"{share:4.0%} malformed: decode {ours:9,.0f}/s, pyarrow.json {least:9,.0f}/s,"
            f" ratio {ours / least:.2f}"
        )


def compare_schemas(rows: int, repeats: int) -> None:
    """Print the rate of events that contain their schema, and of the same events without it."""
    batches = [_wide(rows, with_schemas=with_schemas) for with_schemas in (True, False)]
    table = TableName("shop", "sales")
    contexts = [DecodeContext(table), DecodeContext(table, declare(COLUMNS))]
    pairs = list(zip(batches, contexts, strict=True))
    for batch, context in pairs:
        assert sum(map(len, decode(batch, context).blocks)) == rows, "an event was lost"
    works = [
        lambda batch=batch, context=context: decode(batch, context) for batch, context in pairs
    ]
    within, without = rates(rows, works, repeats)
    sizes = [batch["value"].nbytes // rows for batch in batches]
    print(
        f"{sizes[0]:,} bytes with their schema: decode {within:9,.0f}/s; {sizes[1]:,} bytes"
        f" without: {without:9,.0f}/s, ratio {within / without:.2f}"
    )


def _wide(rows: int, *, with_schemas: bool) -> pa.RecordBatch:
    table = WideTable(rows, with_schemas=with_schemas)
    events = list(table.updates(np.arange(rows) + 1))
    return pa.record_batch(
        {
            "offset": pa.array(range(rows), pa.int64()),
            "key": pa.array([event.key for event in events], pa.binary()),
            "value": pa.array([event.value for event in events], pa.binary()),
        }
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure Debezium's events."""
    compare(TYPES, SAMPLE, floor, arguments)
    options = _options(arguments)
    compare_schemas(min(options.rows, _SCHEMA_ROWS_MAX), options.repeats)


if __name__ == "__main__":
    main()
