"""Located changes <-> deltas.

The columns are those of `model.change.delta_schema`. A delta is a Parquet file of one row group, so
each column is by itself: a reader of few columns decodes no others, and encoding and decoding cost
a fifth of what they cost in Avro, the format of deltas before (decision 52). The metadata names the
schema version that the changes were written under (`lakesplice.schema_version`).

Pages have neither checksums nor statistics: the manifest has a checksum of the whole file, to be
compared before decoding, and every waiting change is read. LZ4 takes a third of what the bytes cost
to be written and read again, in a bucket more; zstd would save a fourth of the bytes at twice the
time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.errors import CorruptFileError
from lakesplice.formats.deltas.avro import MAGIC as AVRO_MAGIC
from lakesplice.formats.deltas.avro import read_avro
from lakesplice.model.change import delta_schema
from lakesplice.model.column_values import promoted
from lakesplice.model.names import GROUP, POSITION_FILE, POSITION_OFFSET, ROW
from lakesplice.model.schema import TableSchema

SCHEMA_VERSION = "lakesplice.schema_version"
_ROW_BITS = 32
_ROW_MAX = (1 << _ROW_BITS) - 1
_ADDRESS_ORDER = [(name, "ascending") for name in (GROUP, ROW, POSITION_FILE, POSITION_OFFSET)]


def encode_delta(located: pa.Table, schema: TableSchema) -> bytes:
    """Return a delta of located changes, sorted by address and position, stamped with the schema
    version.

    `located` has the columns of `delta_schema(schema)` in any order; others are left out. User
    columns that it lacks are not in the file: no change has a value for them.
    """
    ordered = in_address_order(located, schema)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        ordered.schema,
        version="2.6",
        compression="lz4",
        use_dictionary=False,
        write_statistics=False,
        store_decimal_as_integer=True,
        store_schema=False,
    ) as writer:
        writer.write_table(ordered, row_group_size=max(1, ordered.num_rows))
        writer.add_key_value_metadata({SCHEMA_VERSION: str(schema.version)})
    return bytes(sink.getvalue())


def in_address_order(located: pa.Table, schema: TableSchema) -> pa.Table:
    """Return the columns of a delta that `located` has, sorted by address and position."""
    absent = set(schema.names) - set(located.column_names)
    layout = pa.schema([field for field in delta_schema(schema) if field.name not in absent])
    changes = located.select(layout.names)
    if not changes.schema.equals(layout):
        changes = changes.cast(layout)
    if _one_a_row(changes):
        return changes
    order = _order_of_addresses(changes)
    if order is not None:
        ordered = changes.take(order)
        if _one_a_row(ordered):
            return ordered
    return changes.sort_by(_ADDRESS_ORDER)


def decode_delta(
    data: bytes,
    schema: TableSchema,
    version: int,
    *,
    path: str,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Return the changes of a delta in the layout of the present schema, in the order of the file.

    `version` is the schema version that the manifest gives for the delta; columns added since, and
    those that the file lacks, are null, and values of columns whose name or type changed since are
    under the present one and of the present one. `columns` limits the result to some columns of
    `delta_schema(schema)`, in the order given. The caller has compared the file's checksum. Raises
    `CorruptFileError` for anything that is not such a file.
    """
    layout = delta_schema(schema)
    fields = [layout.field(name) for name in (layout.names if columns is None else columns)]
    # Small deltas cost as much as their schemas do.
    then = schema if version == schema.version else schema.at(version)
    written = layout if then is schema else delta_schema(then)
    # Present names, each with the one in the file.
    since = schema.names_since(then)
    names = {since.get(name, name): name for name in written.names}
    wanted = [names[field.name] for field in fields if field.name in names]
    read = read_avro if data.startswith(AVRO_MAGIC) else _read_parquet
    table, found = read(data, pa.schema([written.field(name) for name in wanted]), path)
    _require_version(found, version, path)
    held = frozenset(table.column_names)
    missing = [name for name in wanted if name not in held and name not in then.names]
    if missing:
        raise CorruptFileError(
            "a delta lacks a column; restore the file", path=path, column=missing
        )
    layout = pa.schema(fields)
    if table.schema.equals(layout):
        return table
    return pa.table(
        [
            promoted(table.column(names[field.name]), field.type)
            if names.get(field.name) in held
            else pa.nulls(table.num_rows, field.type)
            for field in fields
        ],
        schema=layout,
    )


def _require_version(found: bytes | None, version: int, path: str) -> None:
    if found != str(version).encode():
        raise CorruptFileError(
            "a delta's schema version is not the one its manifest names; restore the file",
            path=path,
            expected=version,
            found=found,
        )


def _one_a_row(located: pa.Table) -> bool:
    """Whether changes lie in the order of their addresses, one for each."""
    group, row = (located.column(name).to_numpy() for name in (GROUP, ROW))
    same = group[1:] == group[:-1]
    return bool(((group[1:] > group[:-1]) | (same & (row[1:] > row[:-1]))).all())


def _order_of_addresses(located: pa.Table) -> pa.Array | None:
    """Return the order by address alone, a fifth of the work of one by four columns; None if an
    address doesn't fit into one number.
    """
    row = located.column(ROW).to_numpy()
    groups = located.column(GROUP).combine_chunks().dictionary_encode()
    if not len(row) or row.min() < 0 or row.max() > _ROW_MAX:
        return None
    rank = np.argsort(np.argsort(groups.dictionary.to_numpy()))
    packed = rank[groups.indices.to_numpy()] << _ROW_BITS | row
    return pa.array(np.argsort(packed))


def _read_parquet(data: bytes, wanted: pa.Schema, path: str) -> tuple[pa.Table, bytes | None]:
    """Return those of the wanted columns that the file has, and the schema version it names."""
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        held = frozenset(file.schema_arrow.names)
        present = [field for field in wanted if field.name in held]
        names = [field.name for field in present] or [GROUP]
        # A name with a dot also finds columns that are called by what is before it.
        table = file.read(columns=names, use_threads=False).select(names)
        for found, field in zip(table.schema, present, strict=False):
            if found != field:
                raise CorruptFileError(
                    "a delta's column is not of its type; restore the file",
                    path=path,
                    column=field.name,
                )
        return table, (file.metadata.metadata or {}).get(SCHEMA_VERSION.encode())
    except (pa.ArrowException, OSError, KeyError) as error:
        raise CorruptFileError(
            "a delta cannot be decoded; restore the file", path=path, cause=str(error)
        ) from error
