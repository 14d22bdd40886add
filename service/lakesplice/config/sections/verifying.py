"""The settings of `lakesplice verify`: where the databases are, and how hard they may be asked."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from lakesplice.config.options import Options
from lakesplice.config.quantities import Seconds
from lakesplice.config.sections.section import SOURCE_SERVER, Section


class VerifySettings(Section):
    """How tables are compared with their source's database, by a command or by the service."""

    databases: Options = Field(
        default=Options(),
        description="The server that each connector reads, by the connector's `topic.prefix`, as"
        " `mysql://user@host:3306`. A prefix that isn't named here has that of `doctor.database`."
        " The password is taken from MYSQL_PWD.",
    )
    rows_per_second: float = Field(
        default=100_000.0,
        ge=1.0,
        le=1e9,
        description="How many rows of a database are read per second at most, by one connection.",
    )
    threads_running_max: int = Field(
        default=50,
        ge=1,
        le=100_000,
        description="While more threads of the server work than this (its `Threads_running`), no"
        " statement is sent.",
    )
    wait: Seconds = Field(
        default=900.0,
        ge=0.0,
        le=86_400.0,
        description="How long to wait until the lake has what the database had when it was read."
        " Rows that may still be on their way then are reported as unsettled.",
    )

    every: Seconds | None = Field(
        default=None,
        ge=60.0,
        le=31_536_000.0,
        description="How often the service compares each table with its database by itself, one"
        " table after the other; by default never. The limits above apply to reads of the"
        " database and of the lake. The password is taken from MYSQL_PWD in the service's"
        " environment.",
    )
    quick: bool = Field(
        default=False, description="Whether the service compares as with `--quick`."
    )
    sample: float = Field(
        default=1.0,
        gt=0.0,
        le=1.0,
        description="The part of each table that the service compares at a time, as with"
        " `--sample`.",
    )

    @model_validator(mode="after")
    def _addresses(self) -> Self:
        for prefix, address in self.databases.items():
            if not SOURCE_SERVER.fullmatch(address):
                raise ValueError(
                    f"databases: {prefix} must be mysql://user@host:port; the password belongs in"
                    " MYSQL_PWD"
                )
        return self
