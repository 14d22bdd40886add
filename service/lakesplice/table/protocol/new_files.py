"""Base files that are written and durable, but in no version yet."""

from __future__ import annotations

from dataclasses import dataclass

from lakesplice.model.address import BaseFile


@dataclass(frozen=True, slots=True)
class NewFile:
    """A base file that is written and durable, but not visible yet, with Delta statistics
    (JSON).
    """

    base: BaseFile
    stats: str
