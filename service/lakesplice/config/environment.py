"""Environment variables as settings: `LAKESPLICE_KAFKA__BOOTSTRAP_SERVERS` is `kafka.bootstrap_servers`.

Two underscores go a level down. Below a mapping of options the rest is the option's name, in small
letters and with dots: `LAKESPLICE_KAFKA__OPTIONS__SASL_JAAS_CONFIG` is `sasl.jaas.config`. Mappings,
lists and whole sections are written as YAML or JSON.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lakesplice.config.options import Options
from lakesplice.config.problems import Path, Problem, dotted, nearest, section_type, settings_of

PREFIX = "LAKESPLICE_"
# Kubernetes sets these for every service of a namespace; a service named `lakesplice` is likely.
_SERVICE_LINK = re.compile(
    r"_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$"
)
# Stricter than for a single name, since all variables have much in common.
_NEAR = 0.85
_LINK_ADDRESS = re.compile(r"(tcp|udp|sctp)://")


@dataclass(slots=True)
class Variables:
    """The settings found in an environment, which variable gave each path, and what was wrong."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def from_environment(environment: Mapping[str, str], root: type[BaseModel]) -> Variables:
    """Return the settings below `root` that the environment holds; a name that fits none is a problem."""
    found = Variables()
    # In order of name a whole section comes before single settings of it, which then win.
    for name in sorted(environment):
        if name.upper().startswith(PREFIX) and not _is_service_link(name, environment[name]):
            _take(name, environment[name], root, found)
    return found


def variable_name(path: Path) -> str:
    """Return the variable that sets the setting at `path`."""
    return PREFIX + "__".join(str(part) for part in path).upper()


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return `below` with what `above` says laid over it, mapping by mapping."""
    result = dict(below)
    for name, value in above.items():
        old = result.get(name)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[name] = merged(old, value) if both else value
    return result


def _take(name: str, text: str, root: type[BaseModel], found: Variables) -> None:
    place = _place(name[len(PREFIX) :].lower().split("__"), root)
    if place is None:
        found.problems.append(Problem(name, _unknown(name, root)))
        return
    path, info = place
    value: Any = text
    if _is_structured(path, info):
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            found.problems.append(Problem(dotted(path), "is no YAML or JSON", name))
            return
    nested: dict[str, Any] = {str(path[-1]): value}
    for part in reversed(path[:-1]):
        nested = {str(part): nested}
    found.values = merged(found.values, nested)
    found.origins[path] = name


def _place(parts: list[str], root: type[BaseModel]) -> tuple[Path, FieldInfo] | None:
    """Return the path a variable's parts lead to and the last field on it, or None."""
    model: type[BaseModel] | None = root
    info: FieldInfo | None = None
    for depth, part in enumerate(parts):
        if model is None:
            is_option = info is not None and info.annotation is Options
            return _option(parts, depth, info) if is_option and info else None
        info = model.model_fields.get(part)
        if info is None:
            return None
        below = section_type(info)
        model = below if info.annotation is below else None
    return (tuple(parts), info) if info else None


def _option(parts: list[str], depth: int, info: FieldInfo) -> tuple[Path, FieldInfo] | None:
    name = ".".join(part.replace("_", ".") for part in parts[depth:])
    return ((*parts[:depth], name), info) if name else None


def _is_structured(path: Path, info: FieldInfo) -> bool:
    if info.annotation is Options:
        return path[-1] == "options" or path[-1] == "columns"
    return section_type(info) is not None


def _is_service_link(name: str, value: str) -> bool:
    link = _SERVICE_LINK.search(name.upper()) is not None
    return link or (name.upper().endswith("_PORT") and _LINK_ADDRESS.match(value) is not None)


def _unknown(name: str, root: type[BaseModel]) -> str:
    known = {variable_name(path).lower(): path for path, _ in settings_of(root)}
    found = nearest(name, tuple(known), _NEAR)
    if found:
        return f"unknown variable; did you mean {variable_name(known[found])}?"
    return f"unknown variable; variables that start with {PREFIX} are settings"
