"""Writes the schema of the Helm chart's values: the chart's own part, and the settings from here.

    python -m lakesplice.config.values_schema helm/lakesplice/chart.schema.json \\
        > helm/lakesplice/values.schema.json

So a misspelt setting is refused before anything is installed, as the service itself would do.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from lakesplice.config.printing import json_schema
from lakesplice.secrets import MASKED_NAMES

# The chart decides these itself: probes and scrapes need the page, and the jars are in the image.
CHART_DECIDES = (("metrics", "enabled"), ("metrics", "host"), ("spark", "jars_dir"))
# All versions of Helm 3 know this one.
_DIALECT = "http://json-schema.org/draft-07/schema#"
_SCALAR = {"type": ["string", "number", "boolean"]}
Schema = dict[str, Any]


def settings_schema() -> tuple[Schema, Schema]:
    """Return the schema of a configuration file in a chart's values, and its definitions.

    Nothing is required, since a setting may come from a variable; secrets are refused by name.
    """
    schema = json_schema()
    definitions: Schema = schema.pop("$defs")
    for section, name in CHART_DECIDES:
        part = _definition(schema["properties"][section], definitions)
        del part["properties"][name]
    sections = (part for part in definitions.values() if "properties" in part)
    for part in (schema, *sections):
        # An entry of `tables` without `match` means nothing; all else may come by variable.
        part["required"] = [name for name in part.get("required", ()) if name == "match"]
        part["properties"] = {
            name: _of_values(name, below) for name, below in part["properties"].items()
        }
    schema.pop("title", None)
    return schema, definitions


def values_schema(chart: Schema) -> Schema:
    """Return the schema of all values: `chart`, which lacks `settings`, and the settings."""
    settings, definitions = settings_schema()
    return {
        "$schema": _DIALECT,
        **chart,
        "properties": {**chart["properties"], "settings": settings},
        "$defs": {**chart.get("$defs", {}), **definitions},
    }


def _definition(part: Schema, definitions: Schema) -> Schema:
    found: Schema = definitions[part["$ref"].rpartition("/")[2]]
    return found


def _of_values(name: str, part: Schema) -> Schema:
    # A section's default would show what the chart decides; a format is Python's, not Go's.
    plain = {key: value for key, value in part.items() if key not in ("format", "title")}
    if "$ref" in part or part.get("type") == "object":
        plain.pop("default", None)
    if part.get("additionalProperties") == {"type": "string"}:
        # As the service, which takes what YAML reads as a number or a boolean.
        plain["additionalProperties"] = _SCALAR
        if name == "options":
            plain["propertyNames"] = {"not": {"pattern": secret_names()}}
    return plain


def secret_names() -> str:
    """Return a pattern for names of secrets that every dialect of regular expressions reads."""
    either_case = re.sub(r"[a-z]", lambda letter: f"[{letter[0]}{letter[0].upper()}]", MASKED_NAMES)
    return either_case.replace(r"\.", "[._]")


def main(arguments: list[str]) -> int:
    """Write the schema for the chart whose own part is in the file given."""
    chart: Schema = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    sys.stdout.write(json.dumps(values_schema(chart), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
