"""Mappings of types that a user may choose, by the names under which they are set."""

from __future__ import annotations

from enum import StrEnum


class TypeMapping(StrEnum):
    """What some columns become instead; docs/types.md says which, and what is lost."""

    BIGINT_UNSIGNED_TO_BIGINT = "bigint-unsigned-to-bigint"
    DECIMAL_TO_DOUBLE = "decimal-to-double"
    TINYINT1_NOT_BOOL = "tinyint1-not-bool"
    TO_STRING = "to-string"
