"""Typed access to the fields of a decoded action; a field of a wrong type is damage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from lakesplice.errors import CorruptFileError
from lakesplice.model.moments import EpochMs


class Fields:
    """The fields of one action, read from the file `path`; a null counts as absent."""

    def __init__(self, values: object, action: str, path: str) -> None:
        self._action = action
        self._path = path
        if not isinstance(values, Mapping):
            self._fail("the action itself", values)
        self._values: Mapping[str, Any] = values

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text; without it the default, and without that `CorruptFileError`."""
        value: str = self._get(name, str, default)
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an integer."""
        value: int = self._get(name, int, default)
        return self._fail(name, value) if isinstance(value, bool) else value

    def flag(self, name: str, *, default: bool | None = None) -> bool:
        """Return a boolean."""
        value: bool = self._get(name, bool, default)
        return value

    def optional_text(self, name: str) -> str | None:
        """Return a text or None."""
        return None if self._values.get(name) is None else self.text(name)

    def optional_integer(self, name: str) -> int | None:
        """Return an integer or None."""
        return None if self._values.get(name) is None else self.integer(name)

    def optional_moment(self, name: str) -> EpochMs | None:
        """Return a moment or None."""
        value = self.optional_integer(name)
        return None if value is None else EpochMs(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts, empty where absent."""
        values: list[Any] = self._get(name, list, [])
        return tuple(
            value if isinstance(value, str) else self._fail(name, value) for value in values
        )

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Return an object or an Arrow map (a list of pairs), empty where absent."""
        value = self._values.get(name) or {}
        if isinstance(value, list):
            value = dict(value)
        return value if isinstance(value, Mapping) else self._fail(name, value)

    def _get(self, name: str, kind: type[Any], default: Any) -> Any:
        value = self._values.get(name)
        if value is None:
            value = default
        return value if isinstance(value, kind) else self._fail(name, value)

    def _fail(self, name: str, value: object) -> NoReturn:
        raise CorruptFileError(
            "an action of the log has a missing or wrong field; restore the file",
            path=self._path,
            action=self._action,
            field=name,
            value=repr(value)[:100],
        )
