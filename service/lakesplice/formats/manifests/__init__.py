"""Manifests, the log's pointer to one, and plans of shadows: JSON.

Offers their encoding and decoding, checked by checksums. It must not know the log's other actions,
nor what a commit changes.
"""

from lakesplice.formats.manifests.codec import decode_manifest, encode_manifest
from lakesplice.formats.manifests.pointer import Pointer, decode_pointer, encode_pointer

__all__ = ["Pointer", "decode_manifest", "decode_pointer", "encode_manifest", "encode_pointer"]
