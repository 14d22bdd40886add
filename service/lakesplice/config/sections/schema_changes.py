"""The settings of what tables make of the source's schema changes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lakesplice.config.sections.section import Section
from lakesplice.planning.schema.policy import Behaviour, PartialImages, SchemaPolicy

AnyBehaviour = Literal["evolve", "try_evolve", "lenient", "ignore", "exception"]
_ADD = (
    "A column is new at the source. `evolve`, `try_evolve`: the table gets it, and rows that are"
    " there get its default, as at the source, if events tell it; `lenient`: it is null in them;"
    " `ignore`: it is left out; `exception`: the table is parked."
)
_ALTER = (
    "A column has another type. `evolve`: it takes a type that holds all old and new values, and"
    " its column of the base files is rewritten; where the source changed values too, the table"
    " is parked. `try_evolve`, `lenient`: there the new values get a column of their own,"
    " `<name>_2`, and the old one is unchanged. `ignore`: where `evolve` would take a wider type,"
    " the column keeps its own; a record with a value that it doesn't hold exactly is a dead letter"
    " (`out-of-range`), which can be replayed under another policy; where the source changed"
    " values too, the table is parked. `exception`: the table is parked."
)
_RENAME = (
    "Columns disappear and others are new at once, as in a rename. `lenient`: where the topic of"
    " schema changes (`schema_change_topics`) tells that it is one, the column is there under both"
    " names, with the same value in each row, old and new, as long as the source has no other"
    " column of the old name; else the old ones stay, null in rows that change from then on, and"
    " `add_column` says what becomes of the new. `evolve`: if the topic tells of it, the column"
    " gets its new name alone and keeps what it holds, and base files are rewritten; else the"
    " table is parked. `try_evolve`: the same, else the old ones stay as with `lenient`. `ignore`:"
    " the old ones are always kept. `exception`: the table is parked. Columns that"
    " swap names have the source's names, but with `ignore`. If the dropped column was masked"
    " and a new one isn't, the table is parked, unless this is `ignore`."
)
_DROP = (
    "The source dropped a column. `evolve`, `try_evolve`: it is dropped from the table too, not"
    " from its files; `lenient`, `ignore`: it stays, null in rows that change from then on;"
    " `exception`: the table is parked. If the source adds another column under the name, that has"
    " the name from then on, and the old one is `<name>_2`; without `schema_change_topics` that is"
    " seen only if rows came between the two."
)
_DROP_TABLE = (
    "The table was dropped, as the topic of schema changes (`schema_change_topics`) tells, or Canal"
    " among its messages. `evolve`, `try_evolve`: all earlier rows are deleted, at its place in"
    " the order of changes; `lenient`: they stay until the source has a table of the name again,"
    " then they are deleted (Canal's at once); `ignore`: they stay, among those of a table that is"
    " made later under the name; `exception`: the table is parked if there are any. A table that an"
    " online tool (gh-ost, pt-online-schema-change) replaced by its copy wasn't dropped."
)
_RENAME_TABLE = (
    "The table got another name, or its name was given to another table, as the topic of schema"
    " changes (`schema_change_topics`) tells: rows that no event tells of are under a name now"
    " under which they weren't. `exception`: both tables are parked (`rows-moved`). `evolve`,"
    " `try_evolve`: of both all earlier rows are deleted, at its place in the order of changes;"
    " have the connector take a new snapshot of them. `lenient`, `ignore`: rows stay where they"
    " are, in both. A table that an online tool (gh-ost, pt-online-schema-change) replaced by its"
    " copy has its rows still."
)
_DROP_PARTITION = (
    "Partitions were dropped, truncated, exchanged or imported (`ALTER TABLE ... DROP PARTITION`),"
    " as the topic of schema changes tells: no event says which rows went or came. `exception`: the"
    " table is parked (`rows-moved`). `evolve`, `try_evolve`: all earlier rows are deleted, at its"
    " place in the order of changes; have the connector take a new snapshot of the table."
    " `lenient`, `ignore`: rows are unchanged."
)
_TRUNCATE = (
    "The table was truncated. `evolve`, `try_evolve`: all earlier rows are deleted, at its place"
    " in the order of changes; `lenient`, `ignore`: they stay; `exception`: the table is parked."
)
_CREATE = (
    "A topic that is read has no table yet. `evolve`, `try_evolve`, `lenient`: it gets one;"
    " `ignore`: it gets none and isn't read (`lakesplice_tables_not_made`), so nothing of"
    " it is skipped; `exception`: it gets one, parked (`new-table`) until `lakesplice unpark`."
)


class SchemaChangeSettings(Section):
    """What a table makes of the source's schema changes, under Flink CDC's names."""

    add_column: AnyBehaviour = Field(default="evolve", description=_ADD)
    alter_column_type: AnyBehaviour = Field(default="evolve", description=_ALTER)
    rename_column: AnyBehaviour = Field(default="lenient", description=_RENAME)
    drop_column: AnyBehaviour = Field(default="lenient", description=_DROP)
    drop_table: AnyBehaviour = Field(default="lenient", description=_DROP_TABLE)
    truncate_table: AnyBehaviour = Field(default="evolve", description=_TRUNCATE)
    create_table: AnyBehaviour = Field(default="evolve", description=_CREATE)
    rename_table: AnyBehaviour = Field(default="exception", description=_RENAME_TABLE)
    drop_partition: AnyBehaviour = Field(default="exception", description=_DROP_PARTITION)


class TableSchemaChanges(Section):
    """The same for some tables; what isn't given is as for all."""

    add_column: AnyBehaviour | None = Field(
        default=None, description="As `schema_changes.add_column`, here."
    )
    alter_column_type: AnyBehaviour | None = Field(
        default=None, description="As `schema_changes.alter_column_type`, here."
    )
    rename_column: AnyBehaviour | None = Field(
        default=None, description="As `schema_changes.rename_column`, here."
    )
    drop_column: AnyBehaviour | None = Field(
        default=None, description="As `schema_changes.drop_column`, here."
    )
    drop_table: AnyBehaviour | None = Field(
        default=None, description="As `schema_changes.drop_table`, here."
    )
    truncate_table: AnyBehaviour | None = Field(
        default=None, description="As `schema_changes.truncate_table`, here."
    )
    create_table: AnyBehaviour | None = Field(
        default=None, description="As `schema_changes.create_table`, here."
    )
    rename_table: AnyBehaviour | None = Field(
        default=None, description="As `schema_changes.rename_table`, here."
    )
    drop_partition: AnyBehaviour | None = Field(
        default=None, description="As `schema_changes.drop_partition`, here."
    )


def policy_of(
    general: SchemaChangeSettings,
    own: TableSchemaChanges | None,
    partial_images: PartialImages = PartialImages.PARK,
    partition_by: tuple[str, ...] = (),
) -> SchemaPolicy:
    """Return the policy of a table whose entry says `own` of schema changes."""
    given = {} if own is None else own.model_dump(exclude_none=True)
    named = {**general.model_dump(), **given}
    behaviours = {kind: Behaviour(name) for kind, name in named.items()}
    return SchemaPolicy(partial_images=partial_images, partition_by=partition_by, **behaviours)
