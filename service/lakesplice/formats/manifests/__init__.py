"""Manifests, and the log's pointer to one: JSON."""

from lakesplice.formats.manifests.codec import decode_manifest, encode_manifest
from lakesplice.formats.manifests.pointer import Pointer, decode_pointer, encode_pointer

__all__ = ["Pointer", "decode_manifest", "decode_pointer", "encode_manifest", "encode_pointer"]
