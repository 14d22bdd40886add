"""The settings of what tables take of their source's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field, PlainSerializer, field_validator

from lakesplice.config.options import Options
from lakesplice.config.section import Section
from lakesplice.errors import ConfigurationError
from lakesplice.telemetry.secrets import MASK

if TYPE_CHECKING:
    from lakesplice.planning.masks import Mask
    from lakesplice.planning.shaping import Shape

Secret = Annotated[str | None, PlainSerializer(lambda value: MASK if value else None)]


def _masks(masks: Options) -> tuple[tuple[str, Mask], ...]:
    # What masks takes a while to import and most configurations have none.
    from lakesplice.planning.masks import masks_of

    try:
        return masks_of(masks)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None


class MaskingSettings(Section):
    """What masks have in common."""

    secret: Secret = Field(
        default=None,
        min_length=1,
        max_length=10_000,
        repr=False,
        description="What hashes are salted with; needed where a mask is `hash`. Best given as a"
        " variable. With another one the same values have other hashes.",
    )


class ShapeSettings(Section):
    """Which of the source's columns a table has, and how they are masked."""

    include: tuple[str, ...] = Field(
        default=(),
        max_length=10_000,
        description="Columns taken, as names or patterns such as `*_id`; none: all. Key columns are"
        " taken unless `exclude` names them.",
    )
    exclude: tuple[str, ...] = Field(
        default=(),
        max_length=10_000,
        description="Columns left out, as names or patterns; a key column parks the table.",
    )
    masks: Options = Field(
        default=Options(),
        description="Masks by column name or pattern, the first that matches: `hash` (salted with"
        " `masking.secret`), `redact` or `truncate(n)`.",
    )
    raw_dead_letters: bool = Field(
        default=False,
        description="Keep the bytes of dead letters also where columns are masked.",
    )

    @field_validator("masks")
    @classmethod
    def _readable(cls, value: Options) -> Options:
        if value:
            _masks(value)
        return value

    @property
    def hashes(self) -> bool:
        """Whether a mask needs the secret."""
        return any(text.strip() == "hash" for text in self.masks.values())

    def shape(self, secret: str | None) -> Shape:
        """Return the settings as a value for tasks."""
        from lakesplice.planning.shaping import Shape

        masks = _masks(self.masks)
        return Shape(self.include, self.exclude, masks, secret or "", self.raw_dead_letters)
