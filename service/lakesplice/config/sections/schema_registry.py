"""The settings of the schema registry."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from lakesplice.config.options import Options
from lakesplice.config.quantities import Seconds
from lakesplice.config.sections.section import Section

_ADDRESS = re.compile(r"https?://[^\s/@,?#]+(/[^\s@,?#]*)?")
BASIC, BEARER = "basic.auth.user.info", "bearer.auth.token"
CERTIFICATE, KEY = "ssl.certificate.location", "ssl.key.location"
KNOWN_OPTIONS = (BASIC, BEARER, "ssl.ca.location", CERTIFICATE, KEY, "ssl.key.password")


class SchemaRegistrySettings(Section):
    """Where the schemas of events in Avro are kept."""

    url: str | None = Field(
        default=None,
        max_length=10_000,
        description="Address of the registry's API; several addresses of one registry are"
        " separated by commas. The address of Apicurio's compatible API ends in"
        " `/apis/ccompat/v7`. Needed only for events in Avro.",
    )
    numbers: Literal["schema-id", "content-id", "global-id"] = Field(
        default="schema-id",
        description="What the numbers in records identify. `schema-id`: a schema, in an API"
        " like Confluent's. `content-id`, `global-id`: a content or a version, in"
        " Apicurio's own API, whose address ends in `/apis/registry/v2`.",
    )
    timeout_seconds: Seconds = Field(
        default=10.0, ge=0.1, le=600.0, description="How long to wait for one answer."
    )
    retries: int = Field(
        default=5,
        ge=0,
        le=100,
        description="How often to ask again if the registry doesn't answer, or answers that it"
        " is overloaded.",
    )
    options: Options = Field(
        default=Options(),
        description="Credentials and certificates, under the names that Confluent's clients"
        " use: `basic.auth.user.info` (`user:password`), `bearer.auth.token`,"
        " `ssl.ca.location`, `ssl.certificate.location`, `ssl.key.location`,"
        " `ssl.key.password`. Files are read where Spark's tasks run.",
    )

    @field_validator("url")
    @classmethod
    def _addresses(cls, value: str | None) -> str | None:
        if value is None:
            return None
        addresses = [address.strip().rstrip("/") for address in value.split(",")]
        if not all(_ADDRESS.fullmatch(address) for address in addresses):
            raise ValueError(
                "must be an address of http or https without a user, or several separated by"
                f" commas; write a user in options as {BASIC}"
            )
        return ",".join(addresses)

    @field_validator("options")
    @classmethod
    def _options_are_known(cls, value: Options) -> Options:
        for name in value:
            if name not in KNOWN_OPTIONS:
                raise ValueError(f"{name} is not known; known: {', '.join(KNOWN_OPTIONS)}")
        if BASIC in value and BEARER in value:
            raise ValueError(f"either {BASIC} or {BEARER}, not both")
        if BASIC in value and ":" not in value[BASIC]:
            raise ValueError(f"{BASIC} is a user, a colon and a password")
        if KEY in value and CERTIFICATE not in value:
            raise ValueError(f"{KEY} belongs to a {CERTIFICATE}")
        return value

    @model_validator(mode="after")
    def _used(self) -> SchemaRegistrySettings:
        if self.options and self.url is None:
            raise ValueError("options of a schema registry without its url")
        return self
