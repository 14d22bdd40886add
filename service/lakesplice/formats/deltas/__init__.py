"""Deltas: Avro object container files of located changes."""

from lakesplice.formats.deltas.codec import decode_delta, encode_delta

__all__ = ["decode_delta", "encode_delta"]
