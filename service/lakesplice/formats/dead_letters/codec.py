"""Dead letters <-> Avro, through Polars.

The columns, each a union of null and its own Avro type, in one block without compression:

    topic      string   where the record was met
    partition  int
    offset     long
    timestamp  long     the record's own, in milliseconds since 1970
    key        bytes    the record, byte for byte; null where it was null
    value      bytes
    reason     string   a short code
    detail     string   for people
    headers    string   the record's headers as JSON: an array of [name, value in Base64 or null]
    first_seen long     when it first could not be read, in milliseconds since 1970; 0: when the
                        commit was made that names the file
    last_seen  long     likewise, for the last time
    attempts   int      how often it was replayed in vain
    state_before string the state of its partition before it, as in a manifest; empty if unknown
    behind_file  long   the first higher position that was read behind it; -1 while there is none
    behind_offset long

Files from before the last columns lack them. Avro has no checksums; the manifest holds one of
the whole file, to be compared before decoding.
"""

from __future__ import annotations

import io

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import CorruptFileError

RECORD_NAME = "lakesplice_dead_letter"
DEAD_LETTER_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("detail", pa.string(), nullable=False),
        pa.field("headers", pa.string(), nullable=False),
        pa.field("first_seen", pa.int64(), nullable=False),
        pa.field("last_seen", pa.int64(), nullable=False),
        pa.field("attempts", pa.int32(), nullable=False),
        pa.field("state_before", pa.string(), nullable=False),
        pa.field("behind_file", pa.int64(), nullable=False),
        pa.field("behind_offset", pa.int64(), nullable=False),
    ]
)
_LATER: dict[str, str | int] = {
    "headers": "[]",
    "first_seen": 0,
    "last_seen": 0,
    "attempts": 0,
    "state_before": "",
    "behind_file": -1,
    "behind_offset": -1,
}


def encode_dead_letters(dead_letters: pa.Table) -> bytes:
    """Return the file of some letters, in the order given; `dead_letters` is in
    `DEAD_LETTER_SCHEMA`, of which the columns from `headers` on may be missing.
    """
    frame = pl.from_arrow(
        _completed(dead_letters).select(DEAD_LETTER_SCHEMA.names).cast(DEAD_LETTER_SCHEMA)
    )
    assert isinstance(frame, pl.DataFrame)
    sink = io.BytesIO()
    frame.write_avro(sink, compression="uncompressed", name=RECORD_NAME)
    return sink.getvalue()


def decode_dead_letters(data: bytes, *, path: str) -> pa.Table:
    """Return the letters of a file in `DEAD_LETTER_SCHEMA`, in the order they were written.

    The caller has compared the file's checksum. Raises `CorruptFileError` for anything that is not
    such a file.
    """
    try:
        frame = pl.read_avro(io.BytesIO(data))
        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        dead_letters = _completed(table).select(DEAD_LETTER_SCHEMA.names).cast(DEAD_LETTER_SCHEMA)
        dead_letters.validate(full=True)
    except (
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        pa.ArrowInvalid,
        pa.ArrowNotImplementedError,
        KeyError,
        ValueError,
        MemoryError,
    ) as error:
        raise CorruptFileError(
            "a file of dead letters cannot be decoded; restore the file",
            path=path,
            cause=str(error),
        ) from error
    return dead_letters


def _completed(dead_letters: pa.Table) -> pa.Table:
    for name, value in _LATER.items():
        filler = pa.scalar(value, DEAD_LETTER_SCHEMA.field(name).type)
        if name in dead_letters.column_names:
            at = dead_letters.column_names.index(name)
            dead_letters = dead_letters.set_column(
                at, name, pc.fill_null(dead_letters[name], filler)
            )
        else:
            dead_letters = dead_letters.append_column(name, pa.repeat(filler, len(dead_letters)))
    return dead_letters
