"""Reads the configuration: the environment over the file over the defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from lakesplice.config.environment import Variables, from_environment, merged
from lakesplice.config.problems import Path as SettingPath
from lakesplice.config.problems import Problem, described, dotted
from lakesplice.config.settings import LakeSettings, Settings
from lakesplice.errors import ConfigurationError

FILE_BYTES_MAX = 10_000_000
_ANY_LAKE = "lake"


def load(file: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of a YAML file and of the environment, which has precedence.

    By default the environment is the process's own. Raises one `ConfigurationError` that names
    every problem: where it is, which value was found (secrets masked) and what is allowed.
    """
    from_file = _read(file) if file else {}
    variables = from_environment(os.environ if environment is None else environment, Settings)
    problems = list(variables.problems)
    try:
        settings = Settings.model_validate(merged(from_file, variables.values))
    except ValidationError as error:
        # The cause is left out: pydantic's message quotes the input, secrets included.
        problems += [_problem(dict(one), variables) for one in error.errors(include_url=False)]
    else:
        if not problems:
            return settings
    raise _refused(file, problems) from None


def lake_options(
    file: Path | None = None, environment: Mapping[str, str] | None = None
) -> Mapping[str, str]:
    """Return how the lake's store is reached: `lake.options`.

    Without a file only the environment is read, and no other setting has to be there. Errors as
    `load`.
    """
    if file is not None:
        return load(file, environment).lake.options
    variables = from_environment(os.environ if environment is None else environment, Settings)
    if variables.problems:
        raise _refused(None, variables.problems)
    options = variables.values.get("lake", {}).get("options", {})
    try:
        return LakeSettings(root=_ANY_LAKE, options=options).options
    except ValidationError as error:
        found = [
            {**one, "loc": ("lake", *tuple(one["loc"]))} for one in error.errors(include_url=False)
        ]
    raise _refused(None, [_problem(one, variables) for one in found])


def _refused(file: Path | None, problems: list[Problem]) -> ConfigurationError:
    count = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
    lines = "".join(f"\n  {problem}" for problem in problems)
    source = f"{file} and the environment" if file else "the environment"
    return ConfigurationError(f"the configuration of {source} has {count}:{lines}")


def _problem(error: Mapping[str, Any], variables: Variables) -> Problem:
    path: SettingPath = error["loc"]
    origin = next(
        (
            variables.origins[path[:n]]
            for n in range(len(path), 0, -1)
            if path[:n] in variables.origins
        ),
        "",
    )
    return Problem(dotted(path), described(error, Settings), origin)


def _read(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > FILE_BYTES_MAX:
            raise ConfigurationError(
                "the configuration file is too large; check its path", file=str(file)
            )
        text = file.read_text(encoding="utf-8")
        content = yaml.load(text, _StrictLoader)  # noqa: S506  it is a safe loader
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            "the configuration file cannot be read; check its path and rights",
            file=str(file),
            reason=str(error),
        ) from None
    except RecursionError:
        raise ConfigurationError(
            "the configuration file nests too deep; check its path", file=str(file)
        ) from None
    except yaml.YAMLError as error:
        raise ConfigurationError(
            f"the configuration file is not valid YAML: {_place_of(error)}", file=str(file)
        ) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigurationError("the configuration file must hold a mapping", file=str(file))
    return content


def _place_of(error: yaml.YAMLError) -> str:
    """Return what YAML found wrong and where, without the line itself, which may contain a
    secret.
    """
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or "it cannot be read"
    return f"{what} at line {mark.line + 1}, column {mark.column + 1}" if mark else str(what)


class _StrictLoader(yaml.SafeLoader):
    """YAML that refuses repeated names; the plain loader silently keeps the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None,
                    None,
                    f"the name {key!r} isn't text; put it in quotes",
                    key_node.start_mark,
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the name {key!r} is given twice", key_node.start_mark
                )
            seen.add(key)
        result: dict[Any, Any] = super().construct_mapping(node, deep)
        return result
