"""Environment variables as settings: `LAKESPLICE_LAKE__ROOT` is `lake.root`.

Two underscores go a level down. Below a mapping of options the rest is the option's name, in small
letters and with dots: `LAKESPLICE_KAFKA__OPTIONS__SASL_JAAS_CONFIG` is `sasl.jaas.config`.
Mappings, lists and whole sections are written as YAML or JSON. `LAKESPLICE_CONFIG` is not a
setting: it names the file that commands read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_origin

import yaml
from pydantic import BaseModel

from lakesplice.config.options import Options
from lakesplice.config.problems import Path, Problem, dotted, nearest, section_type, settings_of

PREFIX = "LAKESPLICE_"
# Names the file itself; the command line reads it.
FILE = "LAKESPLICE_CONFIG"
# Kubernetes sets these for every service of a namespace, so also for one named `lakesplice`.
_SERVICE_LINK = re.compile(
    r"_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$"
)
# Stricter than for single names, since the names of variables are similar anyway.
_NEAR = 0.85
_LINK_ADDRESS = re.compile(r"(tcp|udp|sctp)://")


@dataclass(slots=True)
class Variables:
    """The settings found in an environment, the variable of each path, and what was wrong."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def from_environment(environment: Mapping[str, str], root: type[BaseModel]) -> Variables:
    """Return the settings below `root` that the environment contains; an unknown name is a
    problem.
    """
    found = Variables()
    # In order of name a section comes before its single settings, which therefore win.
    for name in sorted(environment):
        if name.upper() == FILE or _is_service_link(name, environment[name]):
            continue
        if name.upper().startswith(PREFIX):
            _take(name, environment[name], root, found)
    return found


def variable_name(path: Path) -> str:
    """Return the variable that sets the setting at `path`."""
    return PREFIX + "__".join(str(part) for part in path).upper()


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return `below` with the values of `above` in it, mapping by mapping."""
    result = dict(below)
    for name, value in above.items():
        old = result.get(name)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            value = merged(old, value)
        result[name] = value
    return result


def _take(name: str, text: str, root: type[BaseModel], found: Variables) -> None:
    place = _setting_path(name[len(PREFIX) :].lower().split("__"), root)
    if place is None:
        found.problems.append(Problem(name, _unknown(name, root)))
        return
    path, is_structured = place
    value: Any = text
    if is_structured:
        try:
            value = yaml.safe_load(text)
        except (yaml.YAMLError, RecursionError):
            found.problems.append(Problem(dotted(path), "is not valid YAML or JSON", name))
            return
    nested: dict[str, Any] = {str(path[-1]): value}
    for part in reversed(path[:-1]):
        nested = {str(part): nested}
    found.values = merged(found.values, nested)
    found.origins[path] = name


def _setting_path(parts: list[str], root: type[BaseModel]) -> tuple[Path, bool] | None:
    """Return the path that the parts of a variable's name lead to, and whether its value is YAML;
    or None.
    """
    model: type[BaseModel] | None = root
    is_options = is_structured = False
    for depth, part in enumerate(parts):
        if is_options:
            name = ".".join(rest.replace("_", ".") for rest in parts[depth:])
            return ((*parts[:depth], name), False) if name else None
        info = model.model_fields.get(part) if model else None
        if info is None:
            return None
        below = section_type(info)
        model = below if below is info.annotation else None
        is_options = info.annotation is Options
        is_list = get_origin(info.annotation) is tuple
        is_structured = is_options or is_list or below is not None
    return tuple(parts), is_structured


def _is_service_link(name: str, value: str) -> bool:
    link = _SERVICE_LINK.search(name.upper()) is not None
    return link or (name.upper().endswith("_PORT") and _LINK_ADDRESS.match(value) is not None)


def _unknown(name: str, root: type[BaseModel]) -> str:
    known = {variable_name(path).lower(): path for path, _ in settings_of(root)}
    found = nearest(name, tuple(known), _NEAR)
    if found:
        return f"unknown variable; did you mean {variable_name(known[found])}?"
    return f"unknown variable; variables that start with {PREFIX} are settings"
