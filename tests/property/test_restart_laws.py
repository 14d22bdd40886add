"""Order while a connector stays at one server: it only restarts, and sends some changes again.

The model is `tests/support/failovers.py`. No epoch begins, and no row shows an older state than
before, also if an operator reads records again, unless records had been skipped.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests.support.failovers import (
    Form,
    Reader,
    World,
    catch_up,
    compactions,
    files,
    forms,
    histories,
    live,
    lived,
    losses,
    restarts,
    returns,
    skips,
)


@given(forms, files, histories(restarts, returns))
def test_while_a_connector_only_restarts_no_epoch_begins_and_no_row_shows_an_older_state(
    form: Form, first_files: list[int], history: list[tuple[object, ...]]
) -> None:
    world = World(form, first_files)
    reader = Reader(world)
    shown: dict[int, int] = {}
    for step in history:
        live(world, reader, step)
        numbers = reader.numbers()
        assert all(numbers[key] >= number for key, number in shown.items())
        shown = numbers
    assert not reader.source.epochs


@pytest.mark.slow
@given(forms, files, histories(restarts, compactions, losses, returns))
def test_while_a_connector_only_restarts_missing_records_begin_no_epoch(
    form: Form, first_files: list[int], history: list[tuple[Any, ...]]
) -> None:
    world = World(form, first_files)
    reader = Reader(world)
    shown: dict[int, int] = {}
    for step in history:
        live(world, reader, ("write", 0, step[2]) if step[0] == "write" else step)
        numbers = reader.numbers()
        assert all(numbers[key] >= number for key, number in shown.items())
        shown = numbers
    catch_up(world, reader)
    assert not reader.source.epochs


@pytest.mark.slow
@given(forms, files, histories(restarts, compactions, losses, returns, skips))
def test_skipped_records_may_be_read_later_while_the_connector_stays_at_one_server(
    form: Form, first_files: list[int], history: list[tuple[object, ...]]
) -> None:
    world, reader = lived(form, first_files, history)
    catch_up(world, reader)
