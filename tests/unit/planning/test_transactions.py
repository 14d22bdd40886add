"""Which transactions a table fed by hand records."""

from __future__ import annotations

import numpy as np
import pytest

from lakesplice.errors import UsageError
from lakesplice.planning.by_hand.hand_fed_changes import checked_transaction


@pytest.mark.parametrize("number", [0, -(1 << 63), (1 << 63) - 1, np.int64(7), np.uint8(7)])
def test_a_transaction_has_a_whole_number_of_at_most_64_bits(number: int) -> None:
    kept = checked_transaction(("job", number))
    assert kept == ("job", int(number))
    assert type(kept[1]) is int


@pytest.mark.parametrize(
    "given",
    [
        ("job", 1 << 63), ("job", -(1 << 63) - 1), ("job", True), ("job", 1.0), ("job", "1"),
        ("job", np.uint64(1 << 63)), ("", 1), ("\ud800", 1), (b"job", 1), ("job",), ("job", 1, 2),
        ["job", 1], "job",
    ],
    ids=repr,
)  # fmt: skip
def test_a_transaction_that_the_manifest_cannot_hold_is_refused(given: object) -> None:
    with pytest.raises(UsageError, match="a transaction must be"):
        checked_transaction(given)


def test_changes_need_no_transaction() -> None:
    assert checked_transaction(None) is None
