"""What intake needs of decoded records, whatever format they are in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from lakesplice.model.arrays import Integers, Marks, Mask
from lakesplice.model.formats import FormatName
from lakesplice.model.manifest import ParkCode
from lakesplice.model.position import Ordering
from lakesplice.model.schema import SourceSchema
from lakesplice.planning.rows.image_changes import Images


class Block(Images, Protocol):
    """Decoded records of one source schema, in offset order."""

    @property
    def schema(self) -> SourceSchema:
        """The schema of the row images."""
        ...

    @property
    def rows(self) -> Integers:
        """Indexes among the records, ascending."""
        ...

    @property
    def gtid(self) -> pa.Array:
        """The transaction of each record, null where the source has none."""
        ...

    @property
    def ordering(self) -> Ordering:
        """What the positions are."""
        ...

    @property
    def snapshot(self) -> Marks | None:
        """Marks of changes that are rows of a snapshot, if any is; see `sources/snapshots.py`."""
        ...


class Refused(Protocol):
    """Records that became dead letters: their indexes, ascending, and per record why."""

    @property
    def rows(self) -> Integers:
        """Indexes among the records, ascending."""
        ...

    @property
    def reason(self) -> Sequence[str]:
        """Per record the short code."""
        ...

    @property
    def detail(self) -> Sequence[str]:
        """What is wrong, in words."""
        ...


class Halt(Protocol):
    """A record that its table can't continue with."""

    @property
    def row(self) -> int:
        """Its index among the records."""
        ...

    @property
    def code(self) -> ParkCode:
        """Why the table has to park."""
        ...

    @property
    def detail(self) -> str:
        """What is wrong, in words."""
        ...


class Fences(Protocol):
    """Records behind which no older row lives, since the table was truncated or dropped: their
    indexes, ascending, their positions and their transactions.
    """

    @property
    def rows(self) -> Integers:
        """Indexes among the records, ascending."""
        ...

    @property
    def position_file(self) -> Integers:
        """The upper halves of the positions."""
        ...

    @property
    def position_offset(self) -> Integers:
        """The lower halves of the positions."""
        ...

    @property
    def gtid(self) -> pa.Array:
        """The transaction of each record, null where the source has none."""
        ...

    @property
    def dropped(self) -> Mask:
        """Marks the records that tell of a DROP."""
        ...


class Decoded(Protocol):
    """What a source format made of consecutive records of one partition."""

    @property
    def blocks(self) -> Sequence[Block]:
        """Changes, per source schema."""
        ...

    @property
    def dead(self) -> Refused:
        """Records that could not be decoded."""
        ...

    @property
    def stops(self) -> Sequence[Halt]:
        """Records that their table can't continue with."""
        ...

    @property
    def fences(self) -> Fences:
        """Records that truncated or dropped the table; they count as ignored, too."""
        ...

    @property
    def ignored(self) -> Mapping[str, int]:
        """How many records carried no change, by reason."""
        ...

    @property
    def format(self) -> FormatName | None:
        """What the records were read as; None where that isn't known."""
        ...

    @property
    def suspect_settings(self) -> frozenset[str]:
        """Settings of the source's tools that change values, where the records show them."""
        ...
