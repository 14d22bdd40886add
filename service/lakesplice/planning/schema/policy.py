"""What a table does about the source's schema changes, per kind of change.

Kinds and behaviours have the names that Flink CDC uses. Changes that events can't distinguish can't
be treated differently: if columns disappear and others are new, it may be a rename.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Behaviour(StrEnum):
    """What to do about a change.

    `evolve`: follow it as the source made it, or park. `try_evolve`: the same, but as `lenient` if
    the table can't follow. `lenient`: keep what exists, and add new columns beside it. `ignore`:
    leave the table's schema as it is. `exception`: park.
    """

    EVOLVE = "evolve"
    TRY_EVOLVE = "try_evolve"
    LENIENT = "lenient"
    IGNORE = "ignore"
    EXCEPTION = "exception"


class PartialImages(StrEnum):
    """What to do about a row image that lacks columns of its table although the source has them.

    `park` the table, or `apply` the image column by column: columns that it has are set, others
    stay.
    """

    PARK = "park"
    APPLY = "apply"


@dataclass(frozen=True, slots=True)
class SchemaPolicy:
    """A table's behaviours, what happens to its partial images, and the source columns that it is
    partitioned by and that the log has bounds of, which are fixed when the table is created.

    The defaults here park rather than lose a column; the configuration has its own defaults. A
    rename can't be followed (`evolve`) by events alone, since they don't distinguish it from a drop
    and an addition at once; it needs the source's DDL.
    """

    add_column: Behaviour = Behaviour.EVOLVE
    alter_column_type: Behaviour = Behaviour.EVOLVE
    rename_column: Behaviour = Behaviour.EXCEPTION
    drop_column: Behaviour = Behaviour.EXCEPTION
    drop_table: Behaviour = Behaviour.LENIENT
    truncate_table: Behaviour = Behaviour.EVOLVE
    create_table: Behaviour = Behaviour.EVOLVE
    rename_table: Behaviour = Behaviour.EXCEPTION
    drop_partition: Behaviour = Behaviour.EXCEPTION
    partial_images: PartialImages = PartialImages.PARK
    partition_by: tuple[str, ...] = ()
    stats_columns: tuple[str, ...] = ()
    bloom_filters: bool = False

    @property
    def adds(self) -> bool:
        """Whether the table gets the source's new columns."""
        return self.add_column not in (Behaviour.IGNORE, Behaviour.EXCEPTION)

    @property
    def fills(self) -> bool:
        """Whether existing rows get the new column's default, as at the source."""
        return self.add_column in (Behaviour.EVOLVE, Behaviour.TRY_EVOLVE)

    @property
    def widens(self) -> bool:
        """Whether a column gets a new type that holds all values it had."""
        return self.alter_column_type not in (Behaviour.IGNORE, Behaviour.EXCEPTION)

    @property
    def sets_beside(self) -> bool:
        """Whether a column with an incompatible new type is added beside the old one."""
        return self.alter_column_type in (Behaviour.TRY_EVOLVE, Behaviour.LENIENT)

    @property
    def keeps_types(self) -> bool:
        """Whether a column keeps its type and accepts the values that fit."""
        return self.alter_column_type is Behaviour.IGNORE

    @property
    def follows_drops(self) -> bool:
        """Whether the table continues without a column that the source dropped."""
        return self.drop_column is not Behaviour.EXCEPTION

    @property
    def hides_dropped(self) -> bool:
        """Whether a dropped column is hidden from readers; else it stays, null in rows that
        change.
        """
        return self.drop_column in (Behaviour.EVOLVE, Behaviour.TRY_EVOLVE)

    @property
    def follows_renames(self) -> bool:
        """Whether a column gets the name that the source is known to have given it."""
        return self.rename_column in (Behaviour.EVOLVE, Behaviour.TRY_EVOLVE, Behaviour.LENIENT)

    @property
    def keeps_old_names(self) -> bool:
        """Whether a column that the source is known to have renamed stays under both names."""
        return self.rename_column is Behaviour.LENIENT

    @property
    def keeps_renamed(self) -> bool:
        """Whether columns that disappear while others are new are kept, as by a lenient drop."""
        return self.rename_column not in (Behaviour.EVOLVE, Behaviour.EXCEPTION)

    @property
    def goes_by_names(self) -> bool:
        """Whether a name stays with its column if nothing shows which of two columns it means."""
        return self.rename_column is Behaviour.IGNORE

    @property
    def ignores_new_tables(self) -> bool:
        """Whether a topic without a table stays without one."""
        return self.create_table is Behaviour.IGNORE

    @property
    def parks_new_tables(self) -> bool:
        """Whether a topic without a table gets one that is parked."""
        return self.create_table is Behaviour.EXCEPTION

    @property
    def drops(self) -> bool:
        """Whether the rows of a dropped table are deleted, at the latest when a new table has its
        name.
        """
        return self.drop_table not in (Behaviour.IGNORE, Behaviour.EXCEPTION)

    @property
    def handles_drops_later(self) -> bool:
        """Whether rows of a dropped table stay until a new table has its name."""
        return self.drop_table is Behaviour.LENIENT

    @property
    def parks_dropped(self) -> bool:
        """Whether the table parks at a DROP that would delete rows."""
        return self.drop_table is Behaviour.EXCEPTION

    @property
    def truncates(self) -> bool:
        """Whether a TRUNCATE deletes the table's rows."""
        return self.truncate_table in (Behaviour.EVOLVE, Behaviour.TRY_EVOLVE)

    @property
    def parks_truncated(self) -> bool:
        """Whether the table parks at a TRUNCATE."""
        return self.truncate_table is Behaviour.EXCEPTION


DEFAULT_POLICY = SchemaPolicy()
