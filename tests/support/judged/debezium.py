"""The forms of Debezium's own fixtures."""

from __future__ import annotations

from tests.support.debezium import Flavour, image, payload
from tests.support.judged.case import Case, refused

_BOOLEAN = payload("u", image(1, name="was"), image(1), snapshot=False)

CASES: dict[str, list[Case]] = {
    "Debezium, `json/serde-*.json`": [
        Case([flavour.record(_BOOLEAN, 1)], [{"id": 1, "name": "item 1"}], types)
        for flavour, types in (
            (
                Flavour(schemas=False),
                {"id": "long", "name": "string", "price": "decimal(8,2)", "stock": "integer"},
            ),
        )
    ],
    "Debezium, `json/serde-unwrapped.json`": [refused({"id": 1, "name": "a"}, id="int")],
}
