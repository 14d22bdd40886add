"""Writes docs/openapi.json from the operations of the API.

python -m lakesplice.apps.service.page.document > docs/openapi.json
"""

from __future__ import annotations

import json
import sys

from lakesplice.apps.service.page.api import OPERATIONS
from lakesplice.apps.service.page.openapi import document


def openapi_text() -> str:
    """Return docs/openapi.json."""
    return json.dumps(document(OPERATIONS), indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(openapi_text())
