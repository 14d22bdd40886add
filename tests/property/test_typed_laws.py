"""Whatever types a table had, and in whatever order its changes come, each change is read as it
would be alone, with the types at its position.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from lakesplice.formats.events import DecodeContext, TypeHistory, TypeVersion, declare
from lakesplice.model.position import Position
from tests.support.debezium import (
    DECLARED,
    TABLE,
    compact,
    dead,
    decode_all,
    image,
    images,
    payload,
)

_PRICES = ("decimal(8,2)", "decimal(8,4)", "decimal_text(8,2)", "string", "binary", "long")
_VALUES = ("AGQ=", "12.5", 7, None, "é")


@given(
    st.lists(st.sampled_from(_PRICES), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 50), st.sampled_from(_VALUES)), min_size=1, max_size=12),
)
def test_a_change_is_read_with_the_types_of_its_place(
    prices: Sequence[str], changes: Sequence[tuple[int, object]]
) -> None:
    versions = tuple(
        TypeVersion(Position.of(0, 3, 10 * at, 0, 0), declare({**DECLARED, "price": price}))
        for at, price in enumerate(prices)
    )
    records = [
        (
            compact({"id": row}),
            compact(payload("c", None, image(row, price=price), pos=pos)),
        )
        for row, (pos, price) in enumerate(changes)
    ]
    together = decode_all(records, DecodeContext(TABLE, history=TypeHistory(versions)))
    assert together.stops == ()
    found, refused = images(together), dead(together)
    for row, (pos, _) in enumerate(changes):
        declared = versions[min(pos // 10, len(versions) - 1)].columns
        alone = decode_all(records[row : row + 1], DecodeContext(TABLE, declared))
        assert found.get(row) == images(alone).get(0)
        assert refused.get(row) == dead(alone).get(0)
