"""Writes docs/configuration.md from the settings; the page's head says how to call it."""

from __future__ import annotations

import sys

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from lakesplice.config.environment import variable_name
from lakesplice.config.options import Options
from lakesplice.config.problems import Path, allowed_text, dotted, purpose, settings_of, unit_text
from lakesplice.config.sections.tables import RowSettings, TableSettings
from lakesplice.config.settings import Settings

_HEAD = """\
# Configuration

This file is written by `python -m lakesplice.config.document > docs/configuration.md`; change
`service/lakesplice/config/settings.py` instead.

The configuration is one YAML file (`lakesplice run --config FILE`). Environment variables override
it. The smallest useful file:

```yaml
kafka: {bootstrap_servers: "127.0.0.1:9092", topic_pattern: "shop\\\\..*"}
lake: {root: ./lake}
```

- If the file has a name that isn't below, the service refuses to start and suggests the most
  similar name. The same holds for a variable that starts with `LAKESPLICE_`. All problems are
  reported at once.
- In the name of a variable, two underscores separate a section from its setting. The names of
  options are in small letters with dots: `LAKESPLICE_KAFKA__OPTIONS__SASL_JAAS_CONFIG` sets
  `sasl.jaas.config`. Write mappings and lists as YAML or JSON:
  `LAKESPLICE_SPARK__OPTIONS='{"spark.driver.maxResultSize": "2g"}'`.
- A duration is a number of seconds, or is written as `500ms`, `30s`, `5m`, `1h30m`, `7d`. A size is
  a number of bytes, or is written as `64MiB`, `2GB`.
- `lakesplice config --config FILE` shows the settings in effect, with secrets masked. With
  `--schema` it prints the file's JSON schema, for editors.
"""


def configuration_page() -> str:
    """Return docs/configuration.md."""
    parts = [_HEAD, "\n## The whole service\n"]
    parts += [_setting(path, info) for path, info in settings_of(Settings) if len(path) == 1]
    for name, info in Settings.model_fields.items():
        below = [entry for entry in settings_of(Settings) if entry[0][0] == name]
        if len(below) > 1 or len(below[0][0]) > 1:
            parts.append(f"\n## `{name}`\n\n{purpose(info)}\n")
            parts += [_setting(path, setting) for path, setting in below]
    parts.append(f"\n## An entry of `tables`\n\n{purpose(Settings.model_fields['tables'])}\n")
    entries = settings_of(TableSettings, ("tables[]",))
    own_first = sorted(entries, key=lambda entry: entry[0][1] in RowSettings.model_fields)
    parts += [_setting(path, info) for path, info in own_first]
    return "".join(parts)


def _setting(path: Path, info: FieldInfo) -> str:
    allowed = allowed_text(info)
    lines = [f"\n### `{dotted(path)}`\n", purpose(info), ""]
    lines.append(f"- default: {_default(info)}")
    if allowed:
        lines.append(f"- allowed: {allowed}")
    if "[]" not in str(path[0]):  # entries of a list have none
        lines.append(f"- variable: `{variable_name(path)}`")
    return "\n".join(lines) + "\n"


def _default(info: FieldInfo) -> str:
    value = info.default
    if value is PydanticUndefined:
        return "none, it must be given"
    if value is None or value == () or value == Options():
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int | float):
        return f"`{unit_text(info)(value)}`"
    return f"`{value}`"


if __name__ == "__main__":
    sys.stdout.write(configuration_page())
