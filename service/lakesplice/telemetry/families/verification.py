"""Metrics of comparisons with the database, a part of the catalogue: when a table was compared, the
result, and signs of missing changes between comparisons.
"""

from __future__ import annotations

from lakesplice.telemetry.metric import TABLE, Label, age, counter, rare_counter

EQUAL, DIFFERENT, UNSETTLED = "equal", "different", "unsettled"
"""The outcomes of a comparison."""
NOT_COMPARED, VERIFICATION_FAILED = "not compared", "failed"
"""How a comparison ends if it has no outcome."""

VERIFICATIONS = counter(
    "verifications",
    "comparisons",
    "Comparisons of a table with its database that the service made, or whose result"
    " `lakesplice verify` sent to it: every row is equal (`equal`), rows are proven to differ"
    " (`different`), or none is, but some changed too often to be compared (`unsettled`). For the "
    "service's own comparisons also `not compared` and `failed`.",
    "`different`: `lakesplice history` shows when; run `lakesplice verify` for the table again."
    " `unsettled`: compare the table when it changes less. `not compared`: the page says why."
    " `failed`: the log says why; usually the database doesn't answer.",
    Label("outcome", (EQUAL, DIFFERENT, UNSETTLED, NOT_COMPARED, VERIFICATION_FAILED)),
)
VERIFICATION_AGE = age(
    "last_verification_age_seconds",
    "Time since the table was last compared with its database, by the service or by `lakesplice "
    "verify`, whatever the result. It has no value before the first comparison.",
    "If it is older than readers may accept, set verify.every or run"
    " `lakesplice verify`. If it is far above verify.every, comparisons fail or take longer than"
    " that: raise verify.rows_per_second.",
    TABLE,
)
DIFFERING_ROWS = rare_counter(
    "differing_rows",
    "rows",
    "Rows that `lakesplice verify` has proven to differ from the table's database.",
    "Run `lakesplice verify` for the table again, and see which rows and columns differ.",
    TABLE,
)
UNLINKED_CHANGES = rare_counter(
    "changes_unlinked",
    "changes",
    "Changes whose row before the change differs from the table's row, so that an earlier change"
    " is probably missing.",
    "Some are normal after an ALTER, or if changes come from several partitions. Otherwise"
    " changes are lost: take a new snapshot.",
    TABLE,
)
