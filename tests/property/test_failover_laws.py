"""Order across failovers: the change with the highest position is the newest one, whatever a
connector sends from any server, and however it is read.

The model is `tests/support/failovers.py`. Once all is sent and read, the table equals the source.
If records are missing, this holds for sources whose GTIDs have one order. Until then the table may
show older states. If GTIDs and binlogs begin again (`tests/support/renumbered.py`), the table parks
or equals the source, and it equals the source once an operator has said that an epoch begins.
"""

from __future__ import annotations

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from tests.support import renumbered
from tests.support.failovers import Form, Reader, catch_up, files, forms, lived, steps

SAME_PLACE = [
    *(("write", 0, [0]), ("send", 1), ("fail over", 1, 0), ("read", 0, 0)),
    *(("write", 0, [2]), ("write", 0, [1]), ("send", 1), ("read", 0, 0)),
    *(("write", 0, [1]), ("write", 0, [1]), ("write", 0, [1]), ("send", 1), ("fail over", 0, 0)),
    *(("read", 0, 0), ("write", 0, [1]), ("write", 0, [2]), ("send", 1), ("read", 0, 0)),
]
"""Two servers write transactions of one key at one place of their binlogs."""

TO_AND_FRO = [
    *[step for _ in range(9) for step in (("write", 0, [0]), ("send", 1), ("read", 0, 0))][:-1],
    *(("fail over", 1, 0), ("read", 0, 0), ("write", 0, [0]), ("send", 1)),
    *(("fail over", 0, 2), ("read", 0, 0), ("write", 0, [1]), ("send", 1), ("fail over", 1, 0)),
]
"""A connector goes back to the first server, then on to the second before it has repeated all."""

COMPACTED = [
    *(
        ("write", 0, [0]),
        ("write", 1, [1]),
        ("write", 0, [0]),
        ("write", 0, [0]),
        ("write", 0, [1]),
    ),
    *(("write", 0, [0]), ("send", 6), ("compact", 100), ("read", 0, 0), ("fail over", 2, 5)),
    *(("write", 0, [0]), ("send", 1), ("fail over", 0, 0), ("read", 0, 0)),
]
"""The first repeated change is one that the broker compacted away before it was read."""

MISSED = [
    *(("write", 0, [0]), ("send", 1), ("fail over", 1, 0), ("read", 0, 0), ("write", 0, [0])),
    *(("send", 1), ("read", 50, 0), ("write", 0, [2]), ("write", 0, [2]), ("send", 2)),
    *(("write", 0, [0]), ("send", 1), ("read", 40, 0), ("write", 0, [0]), ("send", 1)),
    *(("fail over", 0, 3), ("write", 0, [0]), ("send", 1), ("compact", 100), ("read", 0, 0)),
]
"""The broker removes changes before they are read, and their repeats have lower positions."""

READ_AGAIN = [
    *(("write", 0, [0]), ("send", 1), ("read", 0, 0), *[("write", 0, [0])] * 4, ("send", 4)),
    *(("read", 20, 0), ("write", 0, [0]), ("send", 1), ("restart", 1), ("fail over", 1, 5)),
    *(("read", 84, 0), ("write", 0, [1]), ("send", 3), ("read", 12, 0), ("write", 0, [1])),
    *(("send", 1), ("go back", 0, 0), ("read", 20, 0), ("write", 0, [1]), ("send", 1)),
    *(("fail over", 0, 0), ("read", 37, 0), ("write", 0, [1]), ("send", 1), ("compact", 100)),
]
"""An operator goes back, while the connector repeats changes at another server."""

CUT_TRANSACTION = [
    *(("write", 0, [0]), ("write", 0, [2, 0]), ("send", 2), ("read", 100, 100)),
    *(("fail over", 1, 0), ("catch up",)),
]
"""A connector continues a transaction at another server, at lower positions."""

BACK_AMONG_REPEATS = [
    *(("write", 0, [0]), ("write", 0, [0]), *[("write", 0, [2])] * 3, ("send", 5)),
    *(("read", 100, 100), ("fail over", 1, 5), ("send", 1), ("read", 100, 100)),
    *(("fail over", 0, 0), ("read", 100, 100)),
]
"""A connector repeats a change at a second server, at a higher place than the later change of its
key, and goes back to the first server.
"""


@pytest.mark.slow
@example(form=Form.MYSQL, first_files=[0, 1, 0], history=BACK_AMONG_REPEATS)
@example(form=Form.MYSQL, first_files=[0, 2, 0], history=SAME_PLACE)
@example(form=Form.MYSQL, first_files=[1, 0, 0], history=TO_AND_FRO)
@example(form=Form.MYSQL, first_files=[0, 0, 1], history=COMPACTED)
@example(form=Form.MYSQL, first_files=[0, 1, 0], history=MISSED)
@example(form=Form.MYSQL, first_files=[0, 2, 0], history=READ_AGAIN)
@example(form=Form.MYSQL, first_files=[1, 0, 0], history=CUT_TRANSACTION)
@given(forms, files, steps | renumbered.steps)
def test_the_newest_change_of_a_key_stands_highest(
    form: Form, first_files: list[int], history: list[tuple[object, ...]]
) -> None:
    world, reader = lived(form, first_files, history, renumbered.ClockedReader)
    catch_up(world, reader)
    event(f"{len(reader.source.epochs)} epochs")
    event(f"GTIDs began again: {world.began > 0}")


@given(forms, files, steps, st.integers(0, 100))
def test_a_table_reloaded_is_the_same_whatever_the_broker_has_compacted(
    form: Form, first_files: list[int], history: list[tuple[object, ...]], share: int
) -> None:
    world, first = lived(form, first_files, history)
    catch_up(world, first)
    world.compact(100)
    second = Reader(world)
    second.batch({at: len(log) * share // 100 for at, log in world.topic.items()})
    catch_up(world, second)
