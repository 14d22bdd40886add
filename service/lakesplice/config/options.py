"""Options that are passed on by name: immutable mappings of strings whose secrets are masked in
prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from lakesplice.secrets import masked_option


class Options(Mapping[str, str]):
    """An immutable mapping. Its `repr` masks secrets; its values are unmasked."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self.masked())

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def masked(self) -> dict[str, str]:
        """The mapping as it may be printed: values that aren't known to be harmless are masked."""
        return {name: masked_option(name, value) for name, value in self._values.items()}

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        plain = core_schema.dict_schema(core_schema.str_schema(), core_schema.str_schema())
        spell: Callable[[Any], Any] = _spelled
        return core_schema.no_info_after_validator_function(
            cls,
            core_schema.no_info_before_validator_function(spell, plain),
            serialization=core_schema.plain_serializer_function_ser_schema(cls.masked),
        )


class ByName(Options):
    """An immutable mapping by names that users chose, such as columns: the value under `password`
    is no secret, but a column's type.
    """

    def masked(self) -> dict[str, str]:
        """The mapping unchanged."""
        return dict(self)


def _spelled(values: Any) -> Any:
    """Return a value as the text that Kafka and Spark expect, since YAML reads `true` and `500` as
    other types.
    """
    if not isinstance(values, Mapping):
        return values
    return {name: _as_text(value) for name, value in values.items()}


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value
