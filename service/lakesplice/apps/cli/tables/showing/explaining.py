"""`lakesplice explain-key`: why a row is as it is."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from lakesplice.apps.cli.options import ConfigOption, TableArgument, lake_options, settings_of
from lakesplice.apps.cli.output import json_line
from lakesplice.errors import UsageError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from lakesplice.model.manifest import Manifest
    from lakesplice.table.explaining.record_values import RecordAccess

RECORDS_MAX = 100_000
FromTopicOption = Annotated[
    bool,
    typer.Option(
        "--from-topic",
        help="Also read the topic again, and show what happened to each record. Starts Spark; "
        "needs the service's --config.",
    ),
]
RecordsOption = Annotated[
    int,
    typer.Option("--records", min=1, help="With --from-topic: how many records are read at most."),
]


def explain_key(
    table: TableArgument,
    key: Annotated[
        list[str],
        typer.Argument(
            help="The key's value; for several key columns one value each, in the key's order. "
            "Write `--` before a value that begins with a dash; write bytes as 0x….",
            show_default=False,
        ),
    ],
    from_topic: FromTopicOption = False,
    records: RecordsOption = RECORDS_MAX,
    values: Annotated[
        bool,
        typer.Option("--values", help="Show the row's values, and details that may quote one."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write one JSON object instead of text.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Show a key's story: its row, the versions that changed it, and what happened to its records.

    A change may have been folded into another, may have come too late, may wait, or may be a dead
    letter: the command shows which, and in which version. It only reads, also beside a running
    service.
    """
    from lakesplice.apps.cli.tables.showing.key_story_text import story_facts, story_lines
    from lakesplice.apps.lake import table_store
    from lakesplice.table.explaining.key_story import explain_key as story_of
    from lakesplice.table.protocol.snapshot import open_snapshot

    store = table_store(table, lake_options(config))
    snapshot = open_snapshot(store)
    with _access(table, snapshot.manifest, config, wanted=from_topic) as access:
        story = story_of(store, snapshot, key, values=values, access=access, records_max=records)
    ordering = snapshot.manifest.ordering
    if as_json:
        typer.echo(json_line(story_facts(story, ordering, values=values)))
        return
    for line in story_lines(story, ordering, values=values):
        typer.echo(line)


def _access(
    table: str, manifest: Manifest, config: Path | None, *, wanted: bool
) -> AbstractContextManager[RecordAccess | None]:
    if not wanted:
        return nullcontext()
    settings = settings_of(config)
    if manifest.is_fed_by_hand:
        raise UsageError("the table is fed by hand, so no topic has its records", table=table)
    if settings is None:
        raise UsageError("--from-topic needs the service's --config: it says how records are read")
    from lakesplice.apps.lake import lake_of
    from lakesplice.apps.record_access import record_access

    _, name = lake_of(table, settings.lake.options)
    return record_access(settings, name)
