"""Maxwell's `old`: which columns a change left unchanged, whatever its notation."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.debezium import dead, images
from tests.support.maxwell_events import (
    Json,
    decode,
    event,
    names,
    row,
)

_changes = st.fixed_dictionaries(
    {"data": st.fixed_dictionaries({"name": names, "stock": st.none() | st.integers(0, 9)})},
    optional={
        "old": st.fixed_dictionaries(
            {}, optional={"name": names, "stock": st.none() | st.integers(0, 9)}
        )
    },
)


@pytest.mark.slow
@given(st.lists(_changes, min_size=1, max_size=6), st.booleans())
def test_a_null_in_the_before_image_never_counts_as_an_unchanged_column(
    changes: list[Json], spaced: bool
) -> None:
    records = []
    for at, change in enumerate(changes):
        key, value = event("update", row(at, **change["data"]), change.get("old"))
        assert value is not None
        records.append((key, value.replace(b'"old":{', b'"old": {') if spaced else value))
    decoded = decode(*records)
    assert dead(decoded) == {}
    for at, (before, after) in images(decoded).items():
        expected = {**row(at, **changes[at]["data"]), "price": Decimal("1.50")}
        assert after == expected
        old = changes[at].get("old")
        assert before == (None if old is None else {**expected, **old})


_ALIKE = ("a", "aa", "ba", "a,a", '",a', '{"a', "é", "aé", "a:", "a,", "a\\")


@pytest.mark.slow
@given(
    st.permutations(_ALIKE),
    st.lists(st.dictionaries(st.sampled_from(_ALIKE), st.none() | st.integers(0, 9)), max_size=4),
    st.integers(1, len(_ALIKE)),
    st.booleans(),
)
@example(names=["aa", "ba"], olds=[{"aa": None}, {"ba": None}], count=2, escaped=False)
def test_a_null_before_is_of_the_column_of_that_whole_name(
    names: list[str], olds: list[Json], count: int, escaped: bool
) -> None:
    names = names[:count]
    after = {"id": 1, **dict.fromkeys(names, 5)}
    olds = [{name: value for name, value in old.items() if name in names} for old in olds]
    records = [event("update", after, old) for old in olds]
    if escaped:
        escape = "é".encode(), b"\\u00e9"
        records = [(key, value and value.replace(*escape)) for key, value in records]
    decoded = decode(*records, types={"id": "int", **dict.fromkeys(_ALIKE, "int")})
    assert dead(decoded) == {}
    found = images(decoded)
    assert [found[at] for at in range(len(olds))] == [({**after, **old}, after) for old in olds]


def test_events_that_were_read_by_the_book_keep_their_places_among_the_others() -> None:
    records = []
    for at in range(6):
        key, value = event("update", row(at, name="}{" if at % 2 else "x"), {"stock": None})
        records.append((key, value))
    decoded = decode(*records)
    assert dead(decoded) == {}
    found = images(decoded)
    for at in range(6):
        after = {**row(at, name="}{" if at % 2 else "x"), "price": Decimal("1.50")}
        assert found[at] == ({**after, "stock": None}, after)
