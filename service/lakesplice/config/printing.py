"""The configuration as people read it: the effective one with comments, and its JSON schema."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lakesplice.config.options import Options
from lakesplice.config.problems import allowed_text, purpose, unit_text
from lakesplice.config.settings import Settings
from lakesplice.secrets import masked

_WIDTH = 100


def as_yaml(settings: Settings) -> str:
    """Return the settings as a configuration file with a comment each; secrets are masked."""
    return "\n".join(_section_lines(settings, 0)) + "\n"


def as_values(settings: Settings) -> dict[str, Any]:
    """Return the settings as plain values, secrets masked."""
    return settings.model_dump(mode="json")


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a configuration file, for editors and for other validators."""
    return Settings.model_json_schema()


def _section_lines(section: BaseModel, depth: int) -> Iterator[str]:
    indent = "  " * depth
    for name, info in type(section).model_fields.items():
        value = getattr(section, name)
        if depth == 0:
            yield ""
        yield from _comment(info, indent)
        if isinstance(value, BaseModel):
            yield f"{indent}{name}:"
            yield from _section_lines(value, depth + 1)
        else:
            yield f"{indent}{name}: {_text(name, value, info)}"


def _comment(info: FieldInfo, indent: str) -> Iterator[str]:
    allowed = allowed_text(info)
    text = f"{purpose(info)} Allowed: {allowed}." if allowed else purpose(info)
    yield from textwrap.wrap(
        text, _WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# "
    )


def _text(name: str, value: Any, info: FieldInfo) -> str:
    """Return a value in YAML's flow style, on one line."""
    if isinstance(value, Options):
        plain: Any = value.masked()
    elif isinstance(value, tuple):
        plain = [
            entry.model_dump(mode="json") if isinstance(entry, BaseModel) else entry
            for entry in value
        ]
    elif isinstance(value, bool) or value is None:
        plain = value
    elif isinstance(value, int | float):
        return unit_text(info)(value)
    else:
        plain = masked(name, value.pattern if isinstance(value, re.Pattern) else value)
    flow: str = yaml.safe_dump(
        plain, default_flow_style=True, width=10_000, sort_keys=False, allow_unicode=True
    )
    return flow.removesuffix("\n").removesuffix("\n...").strip()
