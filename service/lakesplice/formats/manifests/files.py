"""Files as manifests spell them."""

from __future__ import annotations

from typing import Any

from lakesplice.model.address import BaseFile, Cube, Segment, group_name
from lakesplice.model.manifest import FileRef


def file_out(file: FileRef) -> dict[str, Any]:
    """Spell a file of ours."""
    return {"path": file.path, "bytes": file.bytes, "checksum": file.checksum}


def file_in(value: Any) -> FileRef:
    """Read back `file_out`."""
    return FileRef(str(value["path"]), int(value["bytes"]), str(value["checksum"]))


def base_out(file: BaseFile) -> dict[str, Any]:
    """Spell a base file."""
    return {
        "path": file.path,
        "bytes": file.bytes,
        "segments": [[group_name(segment.group), segment.rows] for segment in file.segments],
        "splices": file.splices,
        "tail": [file.tail_bytes, file.tail_checksum],
        **({"partition": list(file.partition)} if file.partition else {}),
        **({} if file.cube is None else {"cube": _cube_out(file.cube)}),
    }


def base_in(value: Any) -> BaseFile:
    """Read back `base_out`."""
    segments = tuple(Segment(int(group, 16), int(rows)) for group, rows in value["segments"])
    size, tail = value["tail"]
    return BaseFile(
        path=str(value["path"]),
        bytes=int(value["bytes"]),
        segments=segments,
        splices=int(value["splices"]),
        tail_bytes=int(size),
        tail_checksum=str(tail),
        partition=tuple(None if part is None else str(part) for part in value.get("partition", ())),
        cube=_cube_in(value["cube"]) if "cube" in value else None,
    )


def _cube_out(cube: Cube) -> dict[str, Any]:
    return {"by": list(cube.by), "number": group_name(cube.number)}


def _cube_in(value: Any) -> Cube:
    return Cube(tuple(int(column) for column in value["by"]), int(value["number"], 16))
