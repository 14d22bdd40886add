"""A converted column, and what all conversions share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Mask


@dataclass(frozen=True)
class Column:
    """A column. `flaws` mark values that aren't of its type, with the reason; these are null in
    `values`.
    """

    values: pa.Array
    flaws: tuple[tuple[Mask, DeadReason], ...] = ()


def column_of(
    values: pa.Array, wrong: Mask | None, reason: DeadReason = DeadReason.OUT_OF_RANGE
) -> Column:
    """Return a column whose values at `wrong` are flawed for `reason`."""
    return Column(values) if wrong is None else Column(values, ((wrong, reason),))


def wrong_type(wrong: Mask | None) -> tuple[tuple[Mask, DeadReason], ...]:
    """Return the flaw of values that could not be read as their type, if there are any."""
    return () if wrong is None else ((wrong, DeadReason.WRONG_TYPE),)


def ranged(raw: pa.Array, least: int, most: int, finish: Callable[[pa.Array], pa.Array]) -> Column:
    """Finish numbers within a closed range; numbers outside of it are wrong."""
    found = pc.min_max(raw)
    if raw.null_count == len(raw) or (
        found["min"].as_py() >= least and found["max"].as_py() <= most
    ):
        return Column(finish(raw))
    beyond = pc.or_(pc.less(raw, least), pc.greater(raw, most)).fill_null(False)
    values = pc.if_else(beyond, pa.scalar(None, raw.type), raw)
    return column_of(finish(values), beyond.to_numpy(zero_copy_only=False))


def finite(raw: pa.Array) -> Column:
    """Finish floating point numbers: an infinite value was beyond the range, since MySQL has no
    infinity and no NaN.
    """
    infinite = pc.invert(pc.is_finite(raw)).fill_null(False)
    if not infinite.true_count:
        return Column(raw)
    values = pc.if_else(infinite, pa.scalar(None, raw.type), raw)
    return column_of(values, infinite.to_numpy(zero_copy_only=False))


def matched(
    raw: pa.Array,
    pattern: str,
    finish: Callable[[pa.Array], tuple[pa.Array, Mask | None]],
    to: pa.DataType | None = None,
) -> Column:
    """Finish the texts that match a pattern; other texts, and matching ones that aren't valid
    values, are wrong.
    """
    other = pc.invert(pc.match_substring_regex(raw, pattern)).fill_null(False)
    texts = pc.if_else(other, pa.scalar(None, pa.string()), raw) if other.true_count else raw
    values, wrong = finish(texts)
    if other.true_count:
        flawed = other.to_numpy(zero_copy_only=False)
        wrong = flawed if wrong is None else wrong | flawed
    return column_of(values if to is None else values.cast(to), wrong, DeadReason.WRONG_TYPE)
