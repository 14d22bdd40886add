"""A table and its driver, with everything that can happen to them, compared with the events applied
one by one.

The rules are in `tests/support/table_machine`. A failure is printed as the steps that lead to it,
with the line that repeats them; `--hypothesis-seed` repeats a whole run.
"""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.support.drawing import examples
from tests.support.table_machine import TableMachine


@pytest.mark.slow
def test_a_table_is_born_by_a_zombie_and_restored_by_its_successor() -> None:
    machine = TableMachine()
    try:
        machine.read_a_snapshot(rows=2, partition=0)
        machine.let_a_second_driver_take_over()
        for key in range(3):
            machine.put([(key, 1)])
            machine.let_a_zombie_go_on(0, (9, 9))
            machine.the_table_is_true()
        assert len(machine.seen) > 1
        assert not machine.can_restore()
        with pytest.raises(AssertionError):
            machine.restore(1, 0, None)
        machine.run_a_batch((9, 9))
        machine.the_table_is_true()
        assert machine.can_restore()
        machine.restore(1, 0, None)
        assert machine.restored is not None
        machine.the_table_is_true()
    finally:
        machine.teardown()


TestTable = TableMachine.TestCase
TestTable.settings = settings(max_examples=examples(50), stateful_step_count=40, print_blob=True)
