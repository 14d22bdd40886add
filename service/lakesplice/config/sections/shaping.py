"""Settings: what tables store of their source's rows."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Self

from pydantic import Field, field_validator, model_validator

from lakesplice.config.options import ByName, Options
from lakesplice.config.sections.section import SECRET_CHARS_MIN, Secret, Section
from lakesplice.errors import ConfigurationError

if TYPE_CHECKING:
    from lakesplice.planning.shape.computing.expression import Expression
    from lakesplice.planning.shape.masks import Mask
    from lakesplice.planning.shape.metadata_columns import MetadataContent
    from lakesplice.planning.shape.shaping import Shape


def _masks(masks: Options) -> tuple[tuple[str, Mask], ...]:
    # What masks takes a while to import and most configurations have none.
    from lakesplice.planning.shape.masks import masks_of

    try:
        return masks_of(masks)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None


def _metadata(names: tuple[str, ...]) -> tuple[MetadataContent, ...]:
    from lakesplice.planning.shape.metadata_columns import metadata_of

    try:
        return metadata_of(names)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None


def _computed(options: Options) -> tuple[tuple[str, Expression], ...]:
    from lakesplice.planning.shape.computing.evaluation import type_of
    from lakesplice.planning.shape.computing.expression import parse

    found = []
    for name, text in options.items():
        if not name.strip():
            raise ValueError("a computed column needs a name")
        try:
            expression = parse(text)
            type_of(expression)
        except ConfigurationError as error:
            raise ValueError(f"{name}: {error}") from None
        found.append((name, expression))
    return tuple(found)


class MetadataSettings(Section):
    """What events say about a change apart from its row, as columns of all tables."""

    columns: tuple[str, ...] = Field(
        default=(),
        max_length=100,
        description="Metadata columns of every table: any of `op_ts`, `op`, `gtid`,"
        " `database_name`, `table_name` and `topic` (docs/shaping.md).",
    )
    prefix: str = Field(
        default="",
        max_length=100,
        description="How the names of metadata columns begin, such as `__`.",
    )

    @field_validator("columns")
    @classmethod
    def _metadata_is_known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        _metadata(value)
        return value


class MaskingSettings(Section):
    """What all masks use."""

    secret: Secret = Field(
        default=None,
        min_length=SECRET_CHARS_MIN,
        max_length=10_000,
        repr=False,
        description="The secret key of hashes; needed if a mask is `hash`. It has at least"
        f" {SECRET_CHARS_MIN} characters and should be random: a person who guesses it can find"
        " values by trying. Best set by the environment variable. With another secret the same"
        " values have other hashes.",
    )


class ShapeSettings(Section):
    """Which columns a table has: which of its source, with which masks, and further ones."""

    include: tuple[str, ...] = Field(
        default=(),
        max_length=10_000,
        description="The columns to include, as names or patterns such as `*_id`; without it"
        " all. Key columns are always included unless `exclude` names them.",
    )
    exclude: tuple[str, ...] = Field(
        default=(),
        max_length=10_000,
        description="The columns to leave out, as names or patterns. If a key column is among"
        " them, the table is parked.",
    )
    masks: ByName = Field(
        default=ByName(),
        description="Masks by column name or pattern: `hash` (with `masking.secret`), `redact`"
        " or `truncate(n)`. The first one that matches applies.",
    )
    computed: ByName = Field(
        default=ByName(),
        description="Columns computed from others, by name: expressions such as"
        " `date_format(created_at, 'yyyy-MM')` (docs/shaping.md).",
    )
    partition_by: tuple[str, ...] = Field(
        default=(),
        max_length=16,
        description="Partition columns, which may be computed columns: each file contains rows"
        " with only one value of each, so that readers can skip files"
        " (docs/shaping.md). Applies when the table is created and can't be changed"
        " later.",
    )
    stats_columns: tuple[str, ...] = Field(
        default=(),
        max_length=32,
        description="Text and moment columns of which the log has the bounds of each file, so that"
        " readers can skip files by them; whole numbers, decimals and dates have bounds anyway"
        " (docs/reading.md). Values of up to 32 characters are then in the log. A name that isn't a"
        " text or moment of a table has no effect. Applies when the table is created and can't be"
        " changed later.",
    )
    bloom_filters: bool = Field(
        default=False,
        description="Whether base files have bloom filters of the key columns, so that readers that"
        " look for a key skip row groups without it (docs/layout.md). They take some 1.3 bytes a"
        " row and key column. Applies when the table is created and can't be changed later.",
    )
    metadata: tuple[str, ...] | None = Field(
        default=None,
        max_length=100,
        description="Metadata columns of these tables; without it those of `metadata.columns`.",
    )
    key: tuple[str, ...] = Field(
        default=(),
        max_length=3,
        description="Columns to put before the source's key, of `database_name`, `table_name`"
        " and `topic`. If several topics become one table, they must differ in"
        " these columns (docs/shaping.md). Choose them before the table is created.",
    )
    raw_dead_letters: bool = Field(
        default=False,
        description="Store the bytes of dead letters even if columns are masked.",
    )

    @field_validator("partition_by", "stats_columns")
    @classmethod
    def _once_each(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        twice = next((name for at, name in enumerate(value) if name in value[:at]), None)
        if twice is not None:
            raise ValueError(f"{twice} is named twice")
        return value

    @model_validator(mode="after")
    def _has_what_partitions(self) -> Self:
        for name in self.partition_by:
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in self.exclude):
                raise ValueError(f"partition_by names {name}, which exclude leaves out")
        for name in self.stats_columns:
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in self.exclude):
                raise ValueError(f"stats_columns names {name}, which exclude leaves out")
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in self.masks):
                raise ValueError(f"stats_columns names {name}, which is masked: bounds are values")
        return self

    @field_validator("masks")
    @classmethod
    def _readable(cls, value: Options) -> Options:
        if value:
            _masks(value)
        return value

    @field_validator("computed")
    @classmethod
    def _computes(cls, value: Options) -> Options:
        if value:
            _computed(value)
        return value

    @model_validator(mode="after")
    def _hides_what_is_masked(self) -> Self:
        if self.computed and self.masks:
            from lakesplice.planning.shape.computing.expression import columns_of

            for name, expression in _computed(self.computed):
                shown = set(columns_of(expression))
                for pattern in self.masks:
                    if any(fnmatch.fnmatchcase(column, pattern) for column in shown):
                        raise ValueError(f"{name} would show what the mask of {pattern} hides")
        return self

    @field_validator("metadata")
    @classmethod
    def _metadata_is_known(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        _metadata(value or ())
        return value

    @field_validator("key")
    @classmethod
    def _of_topics(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if value:
            from lakesplice.planning.shape.metadata_columns import is_of_topic

            for what in _metadata(value):
                if not is_of_topic(what):
                    raise ValueError(
                        f"{what.value} differs from change to change; a key has what a topic's"
                        " rows have in common: database_name, table_name or topic"
                    )
        return value

    def metadata_names(self, general: MetadataSettings) -> tuple[str, ...]:
        """Return the metadata columns of the tables; those of the key come first if only the key
        asks for them.
        """
        names = general.columns if self.metadata is None else self.metadata
        return (*(name for name in self.key if name not in names), *names)

    @property
    def hashes(self) -> bool:
        """Whether a mask needs the secret."""
        return any(text.strip() == "hash" for text in self.masks.values())


def check_own_names(own: ShapeSettings | None, general: MetadataSettings, where: str) -> None:
    """Raise `ValueError` if two of the table's own columns have one name."""
    if own is None:
        return
    metadata_names = own.metadata_names(general)
    met: set[str] = set()
    for name in (*(general.prefix + what for what in metadata_names), *own.computed):
        if name.lower() in met:
            raise ValueError(f"{where}: two columns are called {name}")
        met.add(name.lower())


def shape_of(
    own: ShapeSettings | None, general: MetadataSettings, secret: str | None
) -> Shape | None:
    """Return the shape of a table whose entry has its `own` settings, as a value for tasks; None if
    all of its source's rows are stored as they are.
    """
    given = ShapeSettings() if own is None else own
    names = given.metadata_names(general)
    if own is None and not names:
        return None
    from lakesplice.planning.shape.shaping import Shape

    return Shape(
        include=given.include,
        exclude=given.exclude,
        masks=_masks(given.masks),
        secret=secret or "",
        raw_dead_letters=given.raw_dead_letters,
        metadata=tuple((general.prefix + what, what) for what in _metadata(names)),
        computed=_computed(given.computed),
        key=tuple(general.prefix + name for name in given.key),
    )
