"""The statistics of a chunk or a page: bounds and counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.thrift.compact import EMPTY, Struct
from lakesplice.splicing.thrift.fields import Fields, binary, boolean, i64


@dataclass(frozen=True, slots=True)
class Statistics:
    """Bounds in the PLAIN encoding without a length; None means that the field is absent.

    The `legacy` bounds are fields 1 and 2, whose order of values was never defined.
    """

    min_value: bytes | None = None
    max_value: bytes | None = None
    null_count: int | None = None
    distinct_count: int | None = None
    nan_count: int | None = None
    min_exact: bool | None = None
    max_exact: bool | None = None
    min_legacy: bytes | None = None
    max_legacy: bytes | None = None
    raw: Struct = EMPTY

    @classmethod
    def from_struct(cls, struct: Struct, file_part: FilePart) -> Self:
        """Read the typed fields; raises `CorruptFileError`."""
        fields = Fields(struct, file_part)
        return cls(
            min_value=fields.binary_or_none(6),
            max_value=fields.binary_or_none(5),
            null_count=fields.i64_or_none(3, "null_count", 0),
            distinct_count=fields.i64_or_none(4, "distinct_count", 0),
            nan_count=fields.i64_or_none(9, "nan_count", 0),
            min_exact=fields.boolean_or_none(8),
            max_exact=fields.boolean_or_none(7),
            min_legacy=fields.binary_or_none(2),
            max_legacy=fields.binary_or_none(1),
            raw=struct,
        )

    def to_struct(self) -> Struct:
        """Return the structure; fields that aren't typed here are unchanged."""
        return self.raw.replaced(
            {
                1: binary(self.max_legacy),
                2: binary(self.min_legacy),
                3: i64(self.null_count),
                4: i64(self.distinct_count),
                5: binary(self.max_value),
                6: binary(self.min_value),
                7: boolean(self.max_exact),
                8: boolean(self.min_exact),
                9: i64(self.nan_count),
            }
        )
