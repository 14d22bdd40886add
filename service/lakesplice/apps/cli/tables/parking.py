"""`lakesplice park` and `unpark`: stop tables from taking changes, and let them continue."""

from __future__ import annotations

from typing import Annotated

import typer

from lakesplice.apps.cli.options import WAIT_SECONDS, ConfigOption, WaitOption, parse_offset
from lakesplice.apps.cli.output import ResultOption
from lakesplice.apps.cli.tables.several_tables import (
    TablesArgument,
    TopicOption,
    WhyOption,
    give_to_tables,
)
from lakesplice.errors import UsageError


def park(
    tables: TablesArgument,
    why: WhyOption,
    topic: TopicOption = "",
    as_json: ResultOption = False,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Stop tables from taking changes until `lakesplice unpark`.

    The other tables continue. Readers see the parked tables as they are, and compaction continues.
    Watch the topics' retention: records that Kafka deletes meanwhile are lost to the tables.
    """
    from lakesplice.apps.table_commands.work import PARK

    arguments = {"why": why, "topic": topic}
    give_to_tables(tables, PARK, arguments, wait=wait, config=config, as_json=as_json)


def unpark(
    tables: TablesArgument,
    from_offset: Annotated[
        list[str] | None,
        typer.Option(
            help="Continue a partition at another offset, as partition:offset. Records in"
            " between are skipped, or read again, which does no harm. May be given for each"
            " partition.",
        ),
    ] = None,
    new_epoch: Annotated[
        bool,
        typer.Option(
            help="Positions fell back because another server took over or the binlog was reset:"
            " all further changes count as newer than the earlier ones.",
        ),
    ] = False,
    repeated: Annotated[
        bool,
        typer.Option(
            help="Positions fell back because the source repeats changes: those at or below"
            " their row's position have no effect.",
        ),
    ] = False,
    topic: TopicOption = "",
    as_json: ResultOption = False,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Let parked tables continue, where they stopped or at the given offsets."""
    from lakesplice.apps.table_commands.work import UNPARK
    from lakesplice.planning.sources.operator_directions import LowerPositions

    if new_epoch and repeated:
        raise UsageError("give either --new-epoch or --repeated, not both")
    offsets = sorted(dict(map(parse_offset, from_offset or [])).items())
    stated = (
        LowerPositions.NEW_EPOCH if new_epoch else LowerPositions.REPEATED if repeated else None
    )
    arguments = {"offsets": offsets, "stated": stated, "topic": topic}
    give_to_tables(tables, UNPARK, arguments, wait=wait, config=config, as_json=as_json)
