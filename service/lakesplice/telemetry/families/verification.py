"""Metrics of comparisons with the database, a part of the catalogue: when a table was compared,
what came of it, and what shows between comparisons that a change is missing.
"""

from __future__ import annotations

from lakesplice.telemetry.metric import TABLE, Label, age, counter, rare_counter

EQUAL, DIFFERENT, UNSETTLED = "equal", "different", "unsettled"
"""The outcomes of a comparison."""

VERIFICATIONS = counter(
    "verifications",
    "comparisons",
    "Comparisons of a table with its database whose result `lakesplice verify` sent to the service:"
    " every row is equal (`equal`), rows are proven to differ (`different`), or none is, but some"
    " changed too often to be compared (`unsettled`).",
    "`different`: `lakesplice history` shows when; run `lakesplice verify` for the table again."
    " `unsettled`: compare the table when it changes less.",
    Label("outcome", (EQUAL, DIFFERENT, UNSETTLED)),
)
VERIFICATION_AGE = age(
    "last_verification_age_seconds",
    "Time since `lakesplice verify` last compared the table with its database, whatever came of it."
    " It has no value before the first comparison since the service started.",
    "If it is older than what you promise your readers, run `lakesplice verify`.",
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
