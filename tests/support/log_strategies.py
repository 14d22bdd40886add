"""What a log and a manifest may hold, drawn by hypothesis."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from lakesplice.formats.log.actions import (
    Action,
    Add,
    CommitInfo,
    DomainMetadata,
    Remove,
    TableMetadata,
    TableProtocol,
)
from lakesplice.model.address import BaseFile, Cube, Segment
from lakesplice.model.manifest import DeadLetterRef, DeltaRef, ErasedRef, FileRef, Manifest, RunRef
from lakesplice.model.names import SYSTEM_COLUMNS
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.position import Position
from lakesplice.model.progress.epochs import Epoch
from lakesplice.model.progress.met_gtids import GtidNumbers, GtidRange, GtidRanges, Transaction
from lakesplice.model.progress.source_state import PartitionState, SnapshotState, SourceState
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive

# A name or text of the source can hold anything that Python's text can, lone surrogates as well.
texts = st.text(st.characters(), max_size=12)
counts = st.integers(0, 2**63 - 1)
small = st.integers(0, 1000)
offsets = st.dictionaries(st.integers(0, 2**31), counts, max_size=3)
positions = st.builds(Position, st.integers(-1, 2**63 - 1), st.integers(-1, 2**63 - 1))
file_refs = st.builds(FileRef, texts, counts, texts)

plain_types = st.sampled_from([kind for kind in Primitive if kind is not Primitive.DECIMAL]).map(
    ColumnType
)
decimals = st.integers(1, 38).flatmap(
    lambda precision: st.builds(
        ColumnType, st.just(Primitive.DECIMAL), st.just(precision), st.integers(0, precision)
    )
)


@st.composite
def schemas(draw: st.DrawFn) -> TableSchema:
    names = draw(
        st.lists(
            texts.filter(lambda n: n not in SYSTEM_COLUMNS), min_size=1, max_size=5, unique=True
        )
    )
    columns = tuple(
        Column(draw(small), name, draw(texts), draw(plain_types | decimals), draw(texts))
        for name in names
    )
    key = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    versions = (*sorted(draw(st.lists(st.integers(0, len(names)), max_size=3))), len(names))
    since = draw(st.lists(positions, max_size=len(versions)))
    apart = tuple(draw(st.lists(st.sampled_from(names), max_size=2, unique=True)))
    bounded = frozenset(draw(st.lists(st.sampled_from([c.id for c in columns]), max_size=2)))
    return TableSchema(
        columns,
        tuple(key),
        versions,
        tuple(since),
        partitioned_by=apart,
        bounded=bounded,
        bloom_filters=draw(st.booleans()),
    )


park_reasons = st.builds(
    ParkReason, st.sampled_from(ParkCode), texts, texts, st.integers(-1), counts
)
gtid_numbers = st.builds(GtidNumbers, counts, counts.map(lambda number: number + 1))
gtid_ranges = st.builds(
    GtidRange, st.dictionaries(texts, gtid_numbers, max_size=2), positions, st.booleans()
)
streams = st.dictionaries(texts, counts, max_size=2)
met_gtids = st.builds(
    GtidRanges, st.lists(gtid_ranges, max_size=2).map(tuple), st.booleans(), streams
)
sources = st.builds(
    SourceState,
    texts,
    texts,
    st.dictionaries(
        st.integers(0, 500),
        st.builds(
            PartitionState,
            counts,
            positions,
            st.dictionaries(texts, counts, max_size=2),
            counts,
            st.booleans(),
            st.booleans(),
            met_gtids=st.none() | met_gtids,
            last_transaction=st.none() | st.builds(Transaction, texts, counts, positions, streams),
            newest_us=st.none() | counts,
        ),
        max_size=3,
    ),
    epochs=st.lists(
        st.builds(
            Epoch,
            counts,
            texts,
            counts,
            positions,
            st.dictionaries(texts, counts, max_size=2),
            st.dictionaries(st.integers(0, 500), counts, max_size=2),
        ),
        max_size=2,
    ).map(tuple),
    fence=positions,
    snapshot=st.none()
    | st.builds(SnapshotState, positions, st.frozensets(st.integers(0, 9)), st.booleans()),
    purge_floor=positions,
    shard=st.dictionaries(texts, texts, max_size=2).map(lambda names: tuple(names.items())),
    keys_version=counts,
    parked=st.none() | park_reasons,
)
base_files = st.builds(
    BaseFile,
    texts,
    counts,
    st.lists(st.builds(Segment, counts, counts), max_size=3).map(tuple),
    small,
    partition=st.lists(st.none() | texts, max_size=3).map(tuple),
    cube=st.none() | st.builds(Cube, st.lists(small, max_size=3).map(tuple), counts),
)


def by_topic(found: list[SourceState]) -> dict[str, SourceState]:
    """Sources of one table; one alone is told no `keys_version`, since its runs have it."""
    if len({source.topic for source in found}) < 2:
        found = [replace(source, keys_version=0) for source in found]
    return {source.topic: source for source in found}


manifests = st.builds(
    Manifest,
    generation=counts,
    schema=schemas(),
    sources=st.lists(sources, max_size=3).map(by_topic),
    files=st.lists(base_files, max_size=3).map(lambda files: {file.path: file for file in files}),
    deltas=st.lists(
        st.builds(
            DeltaRef,
            file_refs,
            counts,
            small,
            st.dictionaries(counts, counts, max_size=3),
            counts,
            offsets,
            texts,
        ),
        max_size=3,
    ).map(tuple),
    runs=st.lists(st.builds(RunRef, file_refs, counts, counts), max_size=3).map(tuple),
    dead_letters=st.lists(
        st.builds(DeadLetterRef, file_refs, counts, counts, positions, texts), max_size=2
    ).map(tuple),
    parked=st.none() | park_reasons,
    erased=st.none() | st.builds(ErasedRef, file_refs, counts, positions),
)

text_maps = st.dictionaries(texts, texts, max_size=3)
paths = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
actions: st.SearchStrategy[Action] = st.one_of(
    st.builds(
        TableProtocol,
        st.just(1),
        counts,
        st.lists(texts, max_size=2).map(tuple),
        st.lists(texts, max_size=2).map(tuple),
    ),
    st.builds(
        TableMetadata, texts, texts, text_maps, st.lists(texts, max_size=2).map(tuple), counts
    ),
    st.builds(
        Add,
        paths,
        counts,
        counts,
        st.booleans(),
        st.none() | texts,
        st.dictionaries(texts, st.none() | texts, max_size=2),
    ),
    st.builds(
        Remove,
        paths,
        counts,
        counts,
        st.booleans(),
        st.dictionaries(texts, st.none() | texts, max_size=2),
    ),
    st.builds(DomainMetadata, texts, texts, st.booleans()),
    st.builds(
        CommitInfo,
        counts,
        texts,
        texts,
        texts,
        text_maps,
        st.dictionaries(texts, counts, max_size=2),
    ),
)


names = st.sampled_from(["a", "b", "c"])
