"""Why a table is parked by a row image that lacks columns which the source has, or may have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from lakesplice.model.parking import ParkCode
from lakesplice.model.source_schema import SourceSchema
from lakesplice.planning.schema.policy import PartialImages, SchemaPolicy

Why: TypeAlias = tuple[ParkCode, str]


def refusal(image: SourceSchema, policy: SchemaPolicy) -> Why | None:
    """Return why a partial image is refused by the policy, or by what the table computes; None if
    it isn't.
    """
    if not image.partial:
        return None
    if policy.partial_images is PartialImages.PARK:
        return _omitted([field.name for field in image.omitted], "the event marks as unavailable")
    if not image.lacking:
        return None
    # The computed column would keep its value although other columns that it needs may change.
    name, lacked = image.lacking[0]
    return (
        ParkCode.UNSUPPORTED,
        f"computed column={name!r} needs column={lacked!r}, which the row image lacks; a table"
        " that applies partial images can't compute it: remove it from shape.computed, or set"
        " the source's binlog_row_image to FULL",
    )


def declared_yet_omitted(names: Sequence[str]) -> Why:
    """Return why a table can't continue without columns that it has, and that are declared for
    it.
    """
    return _omitted(
        names,
        "the table has and the configuration declares; if it was dropped at the source, remove"
        " its declaration, and schema_changes.drop_column decides what happens",
    )


def _omitted(names: Sequence[str], why: str) -> Why:
    return (
        ParkCode.PARTIAL_IMAGE,
        f"the row image lacks {', '.join(names)}, which {why}; if the source's binlog_row_image is"
        " not FULL, set partial_images: apply; then give `lakesplice unpark`",
    )
