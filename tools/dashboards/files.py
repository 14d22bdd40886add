"""The dashboards as files of JSON, and the folders that they are in."""

from __future__ import annotations

import json
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards import compaction, fleet, source, spark, table, verification

_ROOT = Path(__file__).resolve().parents[2]
# Helm reads only files that are in the chart.
FOLDERS = (
    _ROOT / "deploy" / "grafana" / "dashboards",
    _ROOT / "helm" / "lakesplice" / "files" / "dashboards",
)
_MODULES = (fleet, table, compaction, source, spark, verification)


def dashboard_texts() -> dict[str, str]:
    """Return the JSON of each dashboard by the name of its file."""
    boards = (module.dashboard() for module in _MODULES)
    return {f"{board.uid}.json": _text(board) for board in boards}


def _text(board: object) -> str:
    return json.dumps(board, cls=JSONEncoder, indent=1, sort_keys=True) + "\n"
