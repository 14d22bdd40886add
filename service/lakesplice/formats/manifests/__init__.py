"""Manifests, and the log's pointer to one: JSON."""

from lakesplice.formats.manifests.codec import (
    Pointer,
    decode_manifest,
    decode_pointer,
    encode_manifest,
    encode_pointer,
)

__all__ = ["Pointer", "decode_manifest", "decode_pointer", "encode_manifest", "encode_pointer"]
