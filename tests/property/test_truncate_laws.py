"""A TRUNCATE beside failovers: one that was read empties the table once, whatever a connector sends
again of it and of the time before it, from any server, in whatever epochs partitions are.

The models are `tests/support/truncating.py` and `failovers.py`. What isn't proven when a TRUNCATE
is read first is in docs/limits.md.
"""

from __future__ import annotations

from hypothesis import event, example, given

from tests.support.failovers import Form, files, forms, steps
from tests.support.truncating import TRUNCATE, lived_through, require_truth, truncated

SENT_AGAIN = [
    *(("write", 0, [2, 0]), ("write", 0, [TRUNCATE]), ("write", 0, [3]), ("write", 0, [0])),
    *(("fail over", 2, 7), ("write", 0, [3]), ("write", 0, [3]), ("write", 0, [0])),
    *(("write", 0, [2]), ("send", 1), ("write", 0, [0]), ("write", 0, [1])),
    *(("write", 0, [1, 1, 3]), ("send", 2), ("fail over", 1, 6)),
]
"""What was before it and after it is sent again, from two further servers."""

TWO_WRITERS = [
    *(("write", 0, [TRUNCATE]), ("catch up",), ("write", 2, [0]), ("write", 0, [3])),
    *(("fail over", 2, 1), ("send", 6), ("fail over", 2, 7)),
]
"""The change behind it is of another stream."""


@example(form=Form.MARIADB, first_files=[5, 22, 25], before=[], history=SENT_AGAIN)
@example(form=Form.MYSQL, first_files=[5, 22, 25], before=[], history=SENT_AGAIN)
@example(form=Form.MYSQL, first_files=[23, 11, 2], before=[], history=TWO_WRITERS)
@given(forms, files, truncated, steps)
def test_a_truncate_that_is_sent_again_changes_nothing(
    form: Form,
    first_files: list[int],
    before: list[tuple[object, ...]],
    history: list[tuple[object, ...]],
) -> None:
    world, reader = lived_through(form, first_files, [*before, *history])
    require_truth(world, reader)
    event(f"{len(reader.source.epochs)} epochs")
