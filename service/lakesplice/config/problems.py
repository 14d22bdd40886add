"""What is wrong with a configuration, one line per problem: where, which value, what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lakesplice.config.options import ByName, Options
from lakesplice.config.quantities import Unit
from lakesplice.secrets import MASK, is_secret, masked, shown_option

Path = tuple[str | int, ...]
# pydantic's words, and ours.
_PLAIN_WORDS = {
    "Input should be a valid string": "must be text",
    "Input should be a valid tuple": "must be a list, such as [a, b] or [a]",
    "Input should": "must",
}
_SHOWN_CHARS_MAX = 80
_NEAR = 0.6
# Of settings elsewhere only those that are nearly the same: `shape.rename` isn't `names`.
_NEAR_ELSEWHERE = 0.8


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to correct: the setting's path, and the variable it came from, if any."""

    where: str
    what: str
    origin: str = ""

    def __str__(self) -> str:
        return f"{self.where}{f' (from {self.origin})' if self.origin else ''}: {self.what}"


def dotted(path: Sequence[str | int]) -> str:
    """Return a path in the form of messages: `tables[0].match`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "the configuration"


def nearest(name: str, known: Sequence[str], cutoff: float = _NEAR) -> str | None:
    """Return the known name that is most similar to `name`, or None if none is similar."""
    found = difflib.get_close_matches(name.lower(), known, n=1, cutoff=cutoff)
    return found[0] if found else None


def section_type(info: FieldInfo) -> type[BaseModel] | None:
    """Return the section type of a field, or of the items of its list; None for a plain setting."""
    kinds: tuple[object, ...] = (info.annotation, *getattr(info.annotation, "__args__", ()))
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None


def settings_of(model: type[BaseModel], path: Path = ()) -> Iterator[tuple[Path, FieldInfo]]:
    """Yield every plain setting below `model` by its path; a list has one path."""
    for name, info in model.model_fields.items():
        below = section_type(info)
        is_list = get_origin(info.annotation) is tuple
        if below is None or is_list:
            yield (*path, name), info
        else:
            yield from settings_of(below, (*path, name))


def unknown(model: type[BaseModel], path: Path, root: type[BaseModel]) -> str:
    """Report that the last name of `path` is unknown in `model`, and which name was probably
    meant.
    """
    name = str(path[-1])
    sibling = nearest(name, tuple(model.model_fields))
    if sibling:
        return f"unknown name; did you mean {dotted((*path[:-1], sibling))}?"
    elsewhere = {str(full[-1]): full for full, _ in settings_of(root)}
    found = nearest(name, tuple(elsewhere), _NEAR_ELSEWHERE)
    if found:
        return f"unknown name; did you mean {dotted(elsewhere[found])}?"
    return f"unknown name; known here: {', '.join(sorted(model.model_fields))}"


def described(error: Mapping[str, Any], root: type[BaseModel]) -> str:
    """Return one of pydantic's errors in words: the value and what is allowed."""
    path: Path = error["loc"]
    model, info = lookup(root, path)
    kind = error["type"]
    if kind == "extra_forbidden":
        return unknown(model, path, root)
    if kind == "missing":
        return f"is missing; {purpose(info)}" if info else "is missing"
    allowed = allowed_values(info) if info and kind != "value_error" else ""
    reason = allowed or error["msg"].removeprefix("Value error, ")
    for words, plain in _PLAIN_WORDS.items():
        reason = reason.replace(words, plain)
    # A value in the place of a section may be one of its secrets, put there by mistake.
    misplaced = info is not None and section_type(info) and isinstance(error["input"], str)
    of_names = info is not None and info.annotation is ByName
    of_options = info is not None and info.annotation is Options
    if of_options and not shown_option(str(path[-1])) and not isinstance(error["input"], Mapping):
        met = repr(MASK)
    else:
        met = "a text" if misplaced else _value_text(() if of_names else path, error["input"])
    return f"{met} cannot be used; {'allowed: ' if allowed else ''}{reason}"


def purpose(info: FieldInfo) -> str:
    """Return what a field is for: its description, or the first line of its section."""
    below = section_type(info)
    return info.description or (below.__doc__ or "" if below else "").partition("\n")[0]


def lookup(root: type[BaseModel], path: Path) -> tuple[type[BaseModel], FieldInfo | None]:
    """Return the last section on a path, and the setting that the path names, if there is one."""
    model = root
    info: FieldInfo | None = None
    for part in path:
        if isinstance(part, int):
            continue
        below = section_type(info) if info else None
        if info and below is None:
            break  # inside a mapping of options
        model = below or model
        info = model.model_fields.get(part)
    return model, info


def allowed_values(info: FieldInfo) -> str:
    """Return a field's bounds in words; empty if its type alone says them."""
    low = high = word = ""
    text = unit_text(info)
    for limit in info.metadata:
        if isinstance(limit, annotated_types.Ge):
            low, word = text(limit.ge), "{} to {}"
        elif isinstance(limit, annotated_types.Gt):
            low, word = text(limit.gt), "above {}, up to {}"
        elif isinstance(limit, annotated_types.Le):
            high = text(limit.le)
    return word.format(low, high) if low and high else ""


def allowed_text(info: FieldInfo) -> str:
    """Return a field's choices or bounds in words; empty if its type alone says them."""
    for kind in _kinds(info.annotation):
        if get_origin(kind) is Literal:
            return " or ".join(map(str, get_args(kind)))
        if isinstance(kind, type) and issubclass(kind, Enum):
            return " or ".join(str(one.value) for one in kind)
    return allowed_values(info)


def unit_text(info: FieldInfo) -> Callable[[Any], str]:
    """Return how values of a field are written: `5m`, `64MiB`, or a plain number."""
    marks = [*info.metadata]
    for kind in _kinds(info.annotation):
        marks += getattr(kind, "__metadata__", ())
    unit = next((mark for mark in marks if isinstance(mark, Unit)), None)
    return unit.text if unit else str


def _kinds(annotation: Any) -> Iterator[Any]:
    """Yield a type and, if its value may be absent, the type of a present value."""
    yield annotation
    if get_origin(annotation) in (Union, UnionType):
        yield from get_args(annotation)


def _value_text(path: Path, value: Any) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    names = [part for part in path if isinstance(part, str)]
    text = repr(value)
    if names and is_secret(names[-1]):
        text = repr(MASK)  # whatever it is: YAML reads some passwords as numbers
    elif isinstance(value, str) and names:
        text = repr(masked(names[-1], value))
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}..."
