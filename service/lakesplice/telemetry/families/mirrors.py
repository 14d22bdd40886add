"""Metrics of Iceberg mirrors, a part of the catalogue: whether they follow their tables."""

from __future__ import annotations

from dataclasses import replace

from lakesplice.telemetry.metric import TABLE, Label, age, durations, rare_counter

MIRROR_COMMITTED = "committed"
"""The attempt added a snapshot to the mirror."""
MIRROR_BEGUN = "begun"
"""The attempt began a new Iceberg table."""
MIRROR_FAILED = "failed"
"""The attempt raised an error."""

ICEBERG_LAG = replace(
    age(
        "iceberg_lag_seconds",
        "Time since a table first had base files or columns that its Iceberg mirror lacks; 0 if it"
        " lacks none. Only tables with `also: [iceberg]` have it.",
        "A few minutes are normal. If it grows, the catalog doesn't answer or refuses:"
        " `iceberg-failed` in the log says why. Old files stay meanwhile.",
        TABLE,
    ),
    nothing=0.0,
    is_rare=True,
)
ICEBERG_COMMITS = rare_counter(
    "iceberg_commits",
    "attempts",
    "Attempts to let an Iceberg mirror follow its table: a snapshot was added (`committed`), a new"
    " Iceberg table was begun (`begun`), or neither was possible (`failed`).",
    "`begun` is normal for a new mirror, after an erasure, and after a change of type that Iceberg"
    " doesn't know; `iceberg-begun` in the log says why. `failed`: `iceberg-failed` says why.",
    TABLE,
    Label("result", (MIRROR_COMMITTED, MIRROR_BEGUN, MIRROR_FAILED)),
)
ICEBERG_SECONDS = durations(
    "iceberg_commit_seconds",
    "Duration of an attempt to let an Iceberg mirror follow its table, with the catalog's answers.",
    "If it is long, the catalog or the lake is slow. Ingest and compaction don't wait for it.",
)
