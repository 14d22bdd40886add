"""The ledger of a batch: it has one verdict for each record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from lakesplice.formats.events.json_reading.strict import Flaw
from lakesplice.formats.events.values.blocks import Decoded, ImageBlock
from lakesplice.formats.events.values.fences import Fence, Fences
from lakesplice.formats.events.values.refusals import DeadLetters, Stop
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.choices import FormatName
from lakesplice.model.parking import ParkCode

TRUNCATE, DROP = "truncate", "drop"


@dataclass
class VerdictLedger:
    """Collects verdicts on `count` records; of two verdicts on one record the first counts."""

    count: int
    open: Mask = field(init=False)
    dead: dict[int, Flaw] = field(default_factory=dict)
    ignored: dict[int, str] = field(default_factory=dict)
    stops: dict[int, Stop] = field(default_factory=dict)
    fences: dict[int, Fence] = field(default_factory=dict)
    blocks: list[ImageBlock] = field(default_factory=list)
    suspect_settings: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.open = np.ones(self.count, np.bool_)

    def kill(self, rows: Iterable[int] | Integers, flaw: Flaw) -> None:
        """Make dead letters of the rows that are still open."""
        for row in map(int, rows):
            if self.open[row]:
                self.open[row] = False
                self.dead[row] = flaw

    def ignore(self, rows: Iterable[int] | Integers, kind: str) -> None:
        """Count the open rows as records that are no changes."""
        for row in map(int, rows):
            if self.open[row]:
                self.open[row] = False
                self.ignored[row] = kind

    def fence(self, row: int, fence: Fence) -> None:
        """Add a fence: the table loses all rows at or below its position, since it was truncated or
        dropped.
        """
        if self.open[row]:
            self.ignore([row], DROP if fence.dropped else TRUNCATE)
            self.fences[row] = fence

    def stop(self, row: int, code: ParkCode, detail: str) -> None:
        """Stop at `row`: nothing from this record on is applied."""
        if self.open[row]:
            self.open[row] = False
            self.stops[row] = Stop(row, code, detail)

    def add(self, block: ImageBlock) -> None:
        """Add a block of changes, unless it is empty; its rows must be open."""
        if len(block):
            self.open[block.rows] = False
            self.blocks.append(block)

    @property
    def end(self) -> int:
        """The index of the first stop; without a stop the number of records."""
        return min(self.stops, default=self.count)

    def next_open(self) -> int | None:
        """Return the first open row before the end."""
        undecided = self.open[: self.end]
        row = int(np.argmax(undecided)) if len(undecided) else 0
        return row if len(undecided) and undecided[row] else None

    def result(self, format_: FormatName | None) -> Decoded:
        """Close the ledger of records read as `format_`: everything at and after the first stop is
        dropped.
        """
        end = self.end
        dead = sorted(row for row in self.dead if row < end)
        blocks = (block.before_row(end) for block in self.blocks)
        return Decoded(
            blocks=tuple(block for block in blocks if len(block)),
            dead=DeadLetters(
                np.array(dead, np.int64),
                tuple(str(self.dead[row].reason) for row in dead),
                tuple(self.dead[row].detail for row in dead),
            ),
            stops=tuple(self.stops[row] for row in sorted(self.stops)),
            ignored=Counter(kind for row, kind in self.ignored.items() if row < end),
            format=format_,
            fences=Fences.of({row: at for row, at in self.fences.items() if row < end}),
            suspect_settings=frozenset(self.suspect_settings),
        )
