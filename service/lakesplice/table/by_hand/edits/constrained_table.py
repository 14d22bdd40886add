"""`ConstrainedTable`: a table fed by hand whose rows have to meet constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.manifest import UpsertState
from lakesplice.planning.by_hand.constraints import (
    broken_constraints,
    checked_name,
    parsed_check,
    require_unbroken,
)
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.table.by_hand.upsert_request import require_fed_by_hand
from lakesplice.table.protocol.intents import SetConstraints
from lakesplice.table.reading.scan import View


class ConstrainedTable(HandFedTable):
    """A table fed by hand with constraints, as Delta keeps them: every write of rows checks them.

    Errors of a write name each constraint with the number of rows that break it, and nothing has
    changed. Each call here is one commit, and returns the version that has it, which is then open.
    All of them block, and raise `UsageError` for a table that a source feeds and `RetryableError`
    if other writers always committed first.
    """

    @property
    def constraints(self) -> Mapping[str, str]:
        """The condition of each check of the open version, by its name."""
        return dict(require_fed_by_hand(self.snapshot.manifest).checks)

    @property
    def required_columns(self) -> tuple[str, ...]:
        """The columns besides the key that hold no null in the open version."""
        return require_fed_by_hand(self.snapshot.manifest).required

    def add_constraint(self, name: str, condition: str) -> int:
        """Require that a condition is true for every row from now on. `condition` is SQL as in
        `Table.update`; as in Delta, null counts as false.

        Reads the columns of the condition. `UsageError` if a row breaks it, it doesn't fit the
        table, or another check has the name.
        """
        name = checked_name(name)

        def changed(now: UpsertState) -> UpsertState:
            if name in now.checks:
                raise UsageError("the table has a constraint of this name; drop it", name=name)
            schema = self.snapshot.manifest.schema
            after = replace(now, checks={**now.checks, name: condition})
            alone = replace(now, checks={name: condition}, required=())
            columns = sorted(parsed_check(condition, schema)[1]) or list(schema.key)
            require_unbroken(broken_constraints(self.read(columns=columns), alone, schema), alone)
            return after

        return self._constrain(changed)

    def drop_constraint(self, name: str) -> int:
        """End a check; `UsageError` if the table has no such check."""
        name = checked_name(name)

        def changed(now: UpsertState) -> UpsertState:
            if name not in now.checks:
                raise UsageError("the table has no such constraint", known=sorted(now.checks))
            return replace(
                now, checks={other: text for other, text in now.checks.items() if other != name}
            )

        return self._constrain(changed)

    def set_required(self, column: str, *, required: bool = True) -> int:
        """Forbid nulls in a column from now on (NOT NULL), or allow them again.

        Reads the column. `UsageError` if a row has null there, also one that was deleted, or one
        whose change isn't in a base file yet: other readers would meet them.
        """

        def changed(now: UpsertState) -> UpsertState:
            schema = self.snapshot.manifest.schema
            if column not in schema.shown or column in schema.key:
                raise UsageError(
                    "give a column that isn't in the key", column=column, columns=schema.shown
                )
            others = tuple(name for name in now.required if name != column)
            if not required:
                return replace(now, required=others)
            self._require_no_null(column)
            return replace(now, required=(*others, column))

        return self._constrain(changed)

    def _require_no_null(self, column: str) -> None:
        is_null = pc.field(column).is_null()
        if rows := self.read(columns=[], filter=is_null).num_rows:
            raise UsageError("rows have null in the column", column=column, rows=rows)
        view = View.READ_OPTIMISED
        found = self.read(view, columns=[], filter=is_null, include_deleted=True)
        if rows := found.num_rows:
            raise UsageError(
                "base files have null in the column, in rows that were deleted or whose change"
                " waits; call compact, and purge(older_than_hours=0)",
                column=column,
                rows=rows,
            )

    def _constrain(self, changed: Callable[[UpsertState], UpsertState]) -> int:
        retries = self._retries()
        while True:
            manifest = self.refresh().snapshot.manifest
            now = require_fed_by_hand(manifest)
            after = changed(now)
            if after == now:
                return self.version
            if self._commit(SetConstraints(manifest.generation, now.position, after)):
                return self.version
            retries.require_another("other writers committed first every time; try again later")
