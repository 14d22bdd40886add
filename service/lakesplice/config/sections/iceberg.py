"""The settings of Iceberg mirrors: which catalog has them, and how often they follow."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from lakesplice.config.options import Options
from lakesplice.config.quantities import Seconds
from lakesplice.config.sections.section import DAY, Section

_NAMESPACE = re.compile(r"[A-Za-z0-9_]*")


class IcebergSettings(Section):
    """The catalog in which tables with `also: [iceberg]` are shown as Iceberg tables."""

    catalog: Options = Field(
        default=Options(),
        description="The catalog, by pyiceberg's properties, such as `type: rest` and `uri`. What"
        " isn't set here is taken from variables such as"
        " `PYICEBERG_CATALOG__LAKESPLICE__CREDENTIAL` and from `~/.pyiceberg.yaml`, where the"
        " catalog is called `lakesplice`. A lake in S3 is reached as `lake.options` says, unless"
        " properties such as `s3.endpoint` are set here.",
    )
    namespace: str = Field(
        default="",
        max_length=255,
        description="The namespace of all mirrors; without it each is in a namespace called as its"
        " database's folder.",
    )
    every: Seconds = Field(
        default=60.0,
        ge=1.0,
        le=DAY,
        description="The least time between two commits to a table's mirror. It shows what base"
        " files have, so an update is in it only after the next compaction.",
    )

    @field_validator("namespace")
    @classmethod
    def _is_name(cls, value: str) -> str:
        if not _NAMESPACE.fullmatch(value):
            raise ValueError("must have letters, digits and underscores only")
        return value
