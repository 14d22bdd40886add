"""The base of every part of the configuration."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, PlainSerializer

from lakesplice.secrets import MASK

DAY = 86_400.0
# 96 bits if drawn from letters and digits, out of reach of guessing.
SECRET_CHARS_MIN = 16
# A server without a database; the password belongs in MYSQL_PWD.
SOURCE_SERVER = re.compile(r"mysql://[^\s/@:]+@[^\s/@?#]+/?")
Secret = Annotated[str | None, PlainSerializer(lambda value: MASK if value else None)]


class Section(BaseModel):
    """A part of the configuration: immutable, and closed to names it doesn't know."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False
    )
