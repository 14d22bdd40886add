"""Events as Maxwell writes them, and the result of decoding them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from lakesplice.formats.events import (
    DecodeContext,
    Decoded,
    declare,
)
from lakesplice.model.change import Op
from lakesplice.model.position import Position
from tests.support.debezium import DECLARED, TABLE, Record, compact, decode_all

TYPES = {**DECLARED, "stock": "int"}
CONTEXT = DecodeContext(TABLE, declare(TYPES))
Json = dict[str, Any]


def row(key: int, **changed: object) -> Json:
    return {"id": key, "name": f"item {key}", "price": 1.5, "stock": key, **changed}


def event(kind: str, data: Json, old: Json | None = None, *without: str, **more: object) -> Record:
    head = {"database": "shop", "table": "items", "type": kind, "ts": 1795247776, "xid": 5}
    place = {"xoffset": 0, "position": "binlog.000003:400", "server_id": 1, "thread_id": 0}
    members = {**head, **place, **more, "data": data}
    if old is not None:
        members["old"] = old
    kept = {name: value for name, value in members.items() if name not in without}
    return compact({"database": "shop", "table": "items", "pk.id": data.get("id")}), compact(kept)


def decode(*records: Record, types: dict[str, str] | None = None) -> Decoded:
    context = CONTEXT if types is None else DecodeContext(TABLE, declare(types))
    return decode_all(records, context)


def places(decoded: Decoded) -> list[tuple[Op, Position]]:
    return [
        (Op(block.op[at]), Position(int(block.position_file[at]), int(block.position_offset[at])))
        for block in decoded.blocks
        for at in range(len(block))
    ]


texts = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ['"old":{', '"data":{', ":null", '"name":null', '",\\"name\\":null', "}}", "},", "}{", "\n"]
)
names = st.none() | texts
