"""Files that are written and durable, but in no version yet."""

from __future__ import annotations

from dataclasses import dataclass

from lakesplice.model.address import BaseFile, Partition
from lakesplice.model.manifest import FileRef


@dataclass(frozen=True, slots=True)
class NewFile:
    """A base file that is written and durable, but not visible yet, with Delta statistics
    (JSON).
    """

    base: BaseFile
    stats: str


@dataclass(frozen=True, slots=True)
class ChangeImages:
    """A file of row images for the change feed, durable, but not visible yet, of one partition."""

    file: FileRef
    partition: Partition = ()
