"""Settings of `lakesplice doctor`: servers that only it asks. The service doesn't need them."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from lakesplice.config.quantities import Seconds
from lakesplice.config.sections.section import DAY, SOURCE_SERVER, Secret, Section

_CONNECT = re.compile(r"https?://[^\s/@?#]+(/[^\s@?#]*)?")


class DoctorSettings(Section):
    """What only `lakesplice doctor` uses: its bounds, and servers beside Kafka and the lake."""

    longest_outage: Seconds = Field(
        default=3 * DAY,
        ge=60.0,
        le=365 * DAY,
        description="The longest time for which the service or a connector may be down: topics and"
        " binlogs have to be kept longer. The default is a weekend and a day.",
    )
    connect_url: str | None = Field(
        default=None,
        max_length=10_000,
        description="Address of Kafka Connect's REST interface, such as `http://connect:8083`; it"
        " is asked for the connectors' settings.",
    )
    connect_user_info: Secret = Field(
        default=None,
        repr=False,
        max_length=10_000,
        description="`user:password` for Kafka Connect, if it asks for them.",
    )
    database: str | None = Field(
        default=None,
        max_length=10_000,
        description="The source's server, `mysql://user@host:3306`, best with the connector's user;"
        " it is asked for its binlog's settings and the user's grants. The password is taken from"
        " MYSQL_PWD.",
    )

    @field_validator("connect_url")
    @classmethod
    def _of_connect(cls, value: str | None) -> str | None:
        if value is not None and not _CONNECT.fullmatch(value):
            raise ValueError(
                "must be an address of http or https without a user, who belongs in"
                " doctor.connect_user_info"
            )
        return value

    @field_validator("database")
    @classmethod
    def _of_database(cls, value: str | None) -> str | None:
        if value is not None and not SOURCE_SERVER.fullmatch(value):
            raise ValueError("must be mysql://user@host:port; the password belongs in MYSQL_PWD")
        return value
