"""Deltas: Parquet files of located changes, and the Avro files of earlier versions.

Offers their encoding and decoding, of whole files or of the changes of some file groups. It must
not know base files, or which change of a row counts.
"""

from lakesplice.formats.deltas.codec import decode_delta, encode_delta

__all__ = ["decode_delta", "encode_delta"]
