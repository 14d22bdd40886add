"""Settings: what tables do about the source's schema changes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from lakesplice.config.sections.section import Section
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy

AnyBehaviour = Literal["evolve", "try_evolve", "lenient", "ignore", "exception"]
_ADD = (
    "The source added a column. `evolve`, `try_evolve`: the table gets the column;"
    " existing rows get its default, as at the source, if events show the default."
    " `lenient`: the table gets the column; it is null in existing rows. `ignore`:"
    " the column is left out. `exception`: the table is parked."
)
_ALTER = (
    "A column has another type. `evolve`: the column gets a type that can hold all"
    " old and new values, and the column is rewritten in the base files; if the"
    " source changed values too, the table is parked. `try_evolve`, `lenient`: as"
    " `evolve`, but if the source changed values, the new values get a column of"
    " their own, `<name>_2`, and the old column stays as it is. `ignore`: if a"
    " wider type would be needed, the column keeps its type, and a record with a"
    " value that it can't hold exactly becomes a dead letter (`out-of-range`),"
    " which can be replayed under another policy; if the source changed values too,"
    " the table is parked. `exception`: the table is parked."
)
_RENAME = (
    "Columns disappear while others appear, as in a rename. `lenient`: if the topic"
    " of schema changes (`schema_change_topics`) shows a rename, the column exists"
    " under both names, with the same value under each, in old and new rows, until"
    " the source has another column of the old name; otherwise the old columns are"
    " kept, null in rows that change from then on, and `add_column` decides on the"
    " new ones. `evolve`: if the topic shows a rename, the column gets its new name"
    " and keeps its values, and base files are rewritten; otherwise the table is"
    " parked. `try_evolve`: as `evolve`, but without the topic the old columns are"
    " kept as with `lenient`. `ignore`: the old columns are always kept."
    " `exception`: the table is parked. If two columns swap their names, the"
    " table's columns do too, except with `ignore`. If the dropped column was"
    " masked and a new one isn't, the table is parked, except with `ignore`."
)
_DROP = (
    "The source dropped a column. `evolve`, `try_evolve`: it is dropped from the"
    " table too, though not from its files. `lenient`, `ignore`: it is kept, and is"
    " null in rows that change from then on. `exception`: the table is parked. If"
    " the source later adds another column of that name, the new column gets the"
    " name and the old one becomes `<name>_2`; without `schema_change_topics` this"
    " is noticed only if rows came between the two statements."
)
_DROP_TABLE = (
    "The source dropped the table, as the topic of schema changes"
    " (`schema_change_topics`) or Canal's messages show. `evolve`, `try_evolve`:"
    " all rows from before the DROP are deleted. `lenient`: they are kept until the"
    " source has a table of that name again, and deleted then (with Canal at once)."
    " `ignore`: they are kept, together with the rows of a later table of that"
    " name. `exception`: the table is parked if it has rows. A table that an online"
    " tool (gh-ost, pt-online-schema-change) replaced by its copy doesn't count as"
    " dropped."
)
_RENAME_TABLE = (
    "The source renamed the table, or gave its name to another one, as the topic of"
    " schema changes (`schema_change_topics`) shows. So rows are under another name"
    " now, and no event contains them. `exception`: both tables are parked"
    " (`rows-moved`). `evolve`, `try_evolve`: in both tables all rows from before"
    " the RENAME are deleted; have the connector take a new snapshot of them."
    " `lenient`, `ignore`: rows stay where they are, in both tables. A table that"
    " an online tool (gh-ost, pt-online-schema-change) replaced by its copy keeps"
    " its rows."
)
_DROP_PARTITION = (
    "Partitions were dropped, truncated, exchanged or imported (`ALTER TABLE ..."
    " DROP PARTITION`), as the topic of schema changes shows. No event says which"
    " rows were removed or added. `exception`: the table is parked (`rows-moved`)."
    " `evolve`, `try_evolve`: all rows from before the statement are deleted; have"
    " the connector take a new snapshot of the table. `lenient`, `ignore`: rows are"
    " unchanged."
)
_TRUNCATE = (
    "The source truncated the table. `evolve`, `try_evolve`: all rows from before"
    " the TRUNCATE are deleted. `lenient`, `ignore`: they are kept. `exception`:"
    " the table is parked."
)
_CREATE = (
    "A topic that is read has no table yet. `evolve`, `try_evolve`, `lenient`: the"
    " table is created. `ignore`: no table is created and the topic isn't read"
    " (`lakesplice_tables_not_made` counts it), so none of its records is skipped."
    " `exception`: the table is created but parked (`new-table`) until you give"
    " `lakesplice unpark`."
)


class SchemaChangeSettings(Section):
    """How a table follows its source's schema changes, under Flink CDC's names."""

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
    """The same for some tables; a policy that isn't given here is the general one."""

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


def policy_of(general: SchemaChangeSettings, own: TableSchemaChanges | None) -> SchemaPolicy:
    """Return the behaviours of a table whose entry has its `own` settings of schema changes; the
    rest of the policy is as by default.
    """
    given = {} if own is None else own.model_dump(exclude_none=True)
    named = {**general.model_dump(), **given}
    behaviours: dict[str, Any] = {kind: Behaviour(name) for kind, name in named.items()}
    return SchemaPolicy(**behaviours)
