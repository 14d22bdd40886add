"""The manifest's reference to erased keys, and the file that contains them.

The file is one line of JSON: `format` 1; `salt` in hexadecimal digits; `keys`, each as its salted
hash in 32 hexadecimal digits and its position. Source: docs/format.md, "Erased keys".
"""

from __future__ import annotations

import json
from typing import Any

from lakesplice.errors import CorruptFileError, UnsupportedError
from lakesplice.formats.manifests.files import file_in, file_out
from lakesplice.model.manifest import ErasedRef
from lakesplice.model.position import Position
from lakesplice.model.progress.erased_keys import ErasedKeys, SaltedHash

_FORMAT = 1
_HALF = 16


def erased_out(erased: ErasedRef) -> dict[str, Any]:
    """Return the manifest's reference to the file of erased keys."""
    highest = [erased.highest.file, erased.highest.offset]
    return {**file_out(erased.file), "keys": erased.keys, "highest": highest}


def erased_in(value: Any) -> ErasedRef:
    """Read back `erased_out`."""
    file, offset = value["highest"]
    return ErasedRef(file_in(value), int(value["keys"]), Position(int(file), int(offset)))


def encode_erased_keys(erased: ErasedKeys) -> bytes:
    """Return the file of some keys, in the order of their hashes."""
    keys = [
        [f"{high:016x}{low:016x}", position.file, position.offset]
        for (high, low), position in sorted(erased.positions.items())
    ]
    value = {"format": _FORMAT, "salt": erased.salt.hex(), "keys": keys}
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def decode_erased_keys(data: bytes, path: str) -> ErasedKeys:
    """Read back `encode_erased_keys`; `path` is for messages.

    Raises `CorruptFileError` if it isn't such a file, and `UnsupportedError` if a newer version
    wrote it.
    """
    try:
        value = json.loads(data)
        if int(value["format"]) > _FORMAT:
            raise UnsupportedError(
                "a newer Lakesplice wrote the erased keys; upgrade this one", path=path
            )
        return ErasedKeys(
            bytes.fromhex(value["salt"]),
            {
                SaltedHash(int(key[:_HALF], 16), int(key[_HALF:], 16)): Position(
                    int(file), int(offset)
                )
                for key, file, offset in value["keys"]
            },
        )
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptFileError(
            "the file of erased keys cannot be read; restore the file", path=path
        ) from error
