"""Writes docs/format-example.md: every byte of a small table, the same on each run.

python -m lakesplice.testing.worked_example > docs/format-example.md
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from lakesplice.storage.local import LocalStore
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Database, Event, TableSpec
from lakesplice.testing.shop.columns import bigint, integer, varchar
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic

ITEMS = TableSpec("items", (bigint("id", optional=False), varchar("name"), integer("n")), ("id",))
_BYTES_PER_LINE = 32
_TEXT = (".json",)
_HEAD = """\
# A table, byte by byte

The worked example of [format.md](format.md), written by
`python -m lakesplice.testing.worked_example > docs/format-example.md`.
`tests/conformance/test_format_document.py` decodes it from this page alone.

The topic `shop.shop.items` has one partition. Its source table has the columns `id BIGINT`,
`name VARCHAR` and `n INT`, and the key `id`.

| version | offsets | what happened |
| --- | --- | --- |
| 0 | | the table is created, with the columns of its first event |
| 1 | 0 to 2 | inserted: (1, 'bolt', 5), (2, 'nut', null), (3, 'washer', 7) |
| 2 | 3 to 6 | `n` of 1 becomes 6; 3 is deleted (an event and a tombstone); a record is no JSON |
| 3 | | compaction |

So the read-optimised view shows (1, 'bolt', 5), (2, 'nut', null) and (3, 'washer', 7) in versions 1
and 2, and (1, 'bolt', 6) and (2, 'nut', null) in version 3; the real-time view shows the latter
from version 2 on.

Binary files are given in hexadecimal, 32 bytes a line.
"""


def build(root: Path) -> Path:
    """Make the example's table in the lake at `root` and return its folder."""
    database = Database((ITEMS,), seed=1)
    topic = SimulatedTopic(database.topic(ITEMS.name))
    clock = FixedClock()
    driver = SimulatedDriver(LocalStore(root), topic, clock, SeededEntropy(1))
    database.insert(ITEMS.name, [(1, "bolt", 5), (2, "nut", None), (3, "washer", 7)])
    topic.append(0, database.drain())
    driver.batch()
    clock.advance(60)
    database.update(ITEMS.name, [(1,)], lambda row: (row[0], row[1], 6))
    database.delete(ITEMS.name, [(3,)])
    events = database.drain()
    topic.append(0, [*events, _broken(events[0])])
    driver.batch()
    clock.advance(60)
    driver.compact()
    return root / driver.name.path


def document() -> str:
    """Return the whole document."""
    with tempfile.TemporaryDirectory() as scratch:
        table = build(Path(scratch))
        files = (path for path in table.rglob("*") if path.is_file())
        return _HEAD + "".join(_section(path, table) for path in sorted(files))


def _broken(event: Event) -> Event:
    return event._replace(value=b"{no JSON")


def _section(path: Path, table: Path) -> str:
    data = path.read_bytes()
    if path.suffix in _TEXT:
        block = f"```json\n{data.decode()}```"
    else:
        lines = (data[at : at + _BYTES_PER_LINE] for at in range(0, len(data), _BYTES_PER_LINE))
        block = "```hex\n" + "".join(f"{line.hex()}\n" for line in lines) + "```"
    return f"\n## `{path.relative_to(table).as_posix()}`\n\n{len(data)} bytes.\n\n{block}\n"


if __name__ == "__main__":
    sys.stdout.write(document())
