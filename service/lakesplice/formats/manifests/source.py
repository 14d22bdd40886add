"""The source of a table in its manifest: how far its partitions are, epochs, fence, snapshot.

Values of the ordinary case are left out. Source: docs/format.md, "Manifest".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakesplice.model.arrays import KeyHash
from lakesplice.model.choices import FormatName
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.position import BEFORE_ALL, Ordering, Position
from lakesplice.model.progress.column_presence import ColumnPresence, ColumnPresences
from lakesplice.model.progress.epochs import Epoch
from lakesplice.model.progress.gap import Gap
from lakesplice.model.progress.met_gtids import (
    GtidNumbers,
    GtidRange,
    GtidRanges,
    MetGtids,
    Transaction,
)
from lakesplice.model.progress.source_state import (
    HighestChange,
    PartitionState,
    SnapshotState,
    SourceState,
)


def source_out(source: SourceState) -> dict[str, Any]:
    """Return a source in the form of a manifest."""
    value: dict[str, Any] = {
        "topic": source.topic,
        "topic_id": source.topic_id,
        "partitions": {
            str(partition): partition_out(state) for partition, state in source.partitions.items()
        },
        "format": source.format,
        "ordering": source.ordering,
    }
    if source.epochs:
        value["epochs"] = [_epoch_out(epoch) for epoch in source.epochs]
    if source.fence != BEFORE_ALL:
        value["fence"] = [source.fence.file, source.fence.offset]
    if source.snapshot is not None:
        value["snapshot"] = {
            "position": [source.snapshot.position.file, source.snapshot.position.offset],
            "passed": sorted(source.snapshot.passed),
            "lossy": source.snapshot.lossy,
        }
    if source.purge_floor != BEFORE_ALL:
        value["purge_floor"] = [source.purge_floor.file, source.purge_floor.offset]
    if source.shard:
        value["shard"] = dict(source.shard)
    if source.keys_version:
        value["keys_version"] = source.keys_version
    if source.parked is not None:
        value["parked"] = parked_out(source.parked)
    if source.presences:
        value["columns"] = _presences_out(source.presences)
    if source.gaps:
        value["gaps"] = [_gap_out(gap, source.topic_id) for gap in source.gaps]
    return value


def _gap_out(gap: Gap, topic_id: str) -> dict[str, Any]:
    value: dict[str, Any] = {
        "partition": gap.partition,
        "start": gap.start,
        "end": gap.end,
        "after": [gap.after.file, gap.after.offset],
    }
    if gap.before is not None:
        value["before"] = [gap.before.file, gap.before.offset]
    if gap.topic_id != topic_id:
        value["topic_id"] = gap.topic_id
    if gap.met is not None:
        value["met_gtids"] = _met_out(gap.met.read)
        if gap.met.last is not None:
            value["last_transaction"] = _transaction_out(gap.met.last)
    return value


def _gap_in(value: Any, topic_id: str) -> Gap:
    return Gap(
        str(value.get("topic_id", topic_id)),
        int(value["partition"]),
        Offset(int(value["start"])),
        None if value["end"] is None else Offset(int(value["end"])),
        position_in(value["after"]),
        position_in(value["before"]) if "before" in value else None,
        met=MetGtids(read, _last_in(value)) if (read := _met_in(value)) else None,
    )


def _presences_out(presences: ColumnPresences) -> list[dict[str, Any]]:
    """Most columns came together, so they stand together."""
    alike: dict[ColumnPresence, list[int]] = {}
    for column, presence in sorted(presences.items()):
        alike.setdefault(presence, []).append(column)
    return [
        {
            "ids": columns,
            "first": [presence.first.file, presence.first.offset],
            **({"gone": [presence.gone.file, presence.gone.offset]} if presence.gone else {}),
        }
        for presence, columns in alike.items()
    ]


def _presences_in(value: Any) -> dict[int, ColumnPresence]:
    return {
        int(column): ColumnPresence(
            position_in(one["first"]), position_in(one["gone"]) if "gone" in one else None
        )
        for one in value
        for column in one["ids"]
    }


def partition_out(state: PartitionState) -> dict[str, Any]:
    """Return the state of a partition in the form of JSON."""
    value: dict[str, Any] = {
        "next_offset": state.next_offset,
        "position": [state.position.file, state.position.offset],
        "gtids": dict(state.gtids),
    }
    if state.met_until:
        value["met_until"] = state.met_until
    if state.repeating:
        value["repeating"] = True
    if state.lossy:
        value["lossy"] = True
    if state.highest is not None:
        value["highest"] = _highest_out(state.highest)
    if state.met_gtids is not None:
        value["met_gtids"] = _met_out(state.met_gtids)
        value["recent_gtids"] = {}  # versions that don't know ranges take nothing for met
    if state.last_transaction is not None:
        value["last_transaction"] = _transaction_out(state.last_transaction)
    return value


def _met_out(met: GtidRanges) -> dict[str, Any]:
    value: dict[str, Any] = {"ranges": [_range_out(part) for part in met.ranges]}
    if met.whole:
        value["whole"] = True
    if met.since_missing:
        value["since_missing"] = dict(met.since_missing)
    return value


def _range_out(part: GtidRange) -> dict[str, Any]:
    value: dict[str, Any] = {"numbers": {name: list(own) for name, own in part.numbers.items()}}
    if part.above != BEFORE_ALL:
        value["above"] = [part.above.file, part.above.offset]
    if part.from_start:
        value["from_start"] = True
    return value


def _met_in(value: Any) -> GtidRanges | None:
    if "met_gtids" in value:
        met = value["met_gtids"]
        return GtidRanges(
            tuple(_range_in(part) for part in met["ranges"]),
            bool(met.get("whole", False)),
            _numbers_in(met.get("since_missing", {})),
        )
    return _recent_in(value) if "recent_gtids" in value else None


def _range_in(value: Any) -> GtidRange:
    numbers = {
        str(name): GtidNumbers(int(start), int(stop))
        for name, (start, stop) in value["numbers"].items()
    }
    above = position_in(value["above"]) if "above" in value else BEFORE_ALL
    return GtidRange(numbers, above, bool(value.get("from_start", False)))


def _recent_in(value: Any) -> GtidRanges:
    """Read the form without an order of streams."""
    highest, starts = _numbers_in(value["recent_gtids"]), _numbers_in(value.get("recent_from", {}))
    numbers = {
        name: GtidNumbers(starts.get(name, 0), number + 1)
        for name, number in highest.items()
        if starts.get(name, 0) <= number
    }
    ranges = (GtidRange(numbers),) if numbers else ()
    return GtidRanges(ranges, whole=False, since_missing=highest)


def _transaction_out(transaction: Transaction) -> dict[str, Any]:
    value: dict[str, Any] = {
        "stream": transaction.stream,
        "number": transaction.number,
        "position": [transaction.position.file, transaction.position.offset],
    }
    if transaction.executed:
        value["executed"] = dict(transaction.executed)
    return value


def _last_in(value: Any) -> Transaction | None:
    if "last_transaction" not in value:
        return None
    value = value["last_transaction"]
    return Transaction(
        str(value["stream"]),
        int(value["number"]),
        position_in(value["position"]),
        _numbers_in(value.get("executed", {})),
    )


def _highest_out(change: HighestChange) -> dict[str, Any]:
    return {
        "position": [change.position.file, change.position.offset],
        "key": list(change.key),
        "op": change.op,
        "digest": change.digest,
        "schema_version": change.schema_version,
    }


def _epoch_out(epoch: Epoch) -> dict[str, Any]:
    return {
        "number": epoch.number,
        "stream": epoch.stream,
        "first": epoch.first,
        "position": [epoch.position.file, epoch.position.offset],
        "before": dict(epoch.before),
        "entered": integers_out(epoch.entered),
    }


def _snapshot_in(value: Any) -> SnapshotState:
    passed = frozenset(int(partition) for partition in value["passed"])
    return SnapshotState(position_in(value["position"]), passed, bool(value["lossy"]))


def _epoch_in(value: Any) -> Epoch:
    return Epoch(
        number=int(value["number"]),
        stream=str(value["stream"]),
        first=int(value["first"]),
        position=position_in(value["position"]),
        before={str(name): int(number) for name, number in value["before"].items()},
        entered={
            int(partition): Offset(int(offset)) for partition, offset in value["entered"].items()
        },
    )


def source_in(value: Any) -> SourceState:
    """Read back `source_out`; whatever indexing into other JSON raises."""
    return SourceState(
        topic=str(value["topic"]),
        topic_id=str(value["topic_id"]),
        partitions={
            int(number): partition_in(state) for number, state in value["partitions"].items()
        },
        format=None if value.get("format") is None else FormatName(value["format"]),
        ordering=None if value.get("ordering") is None else Ordering(value["ordering"]),
        epochs=tuple(_epoch_in(epoch) for epoch in value.get("epochs", ())),
        fence=position_in(value["fence"]) if "fence" in value else BEFORE_ALL,
        snapshot=_snapshot_in(value["snapshot"]) if "snapshot" in value else None,
        purge_floor=position_in(value["purge_floor"]) if "purge_floor" in value else BEFORE_ALL,
        shard=tuple((str(name), str(text)) for name, text in value.get("shard", {}).items()),
        keys_version=int(value.get("keys_version", 0)),
        parked=parked_in(value["parked"]) if "parked" in value else None,
        presences=_presences_in(value.get("columns", ())),
        gaps=tuple(_gap_in(gap, str(value["topic_id"])) for gap in value.get("gaps", ())),
    )


def partition_in(value: Any) -> PartitionState:
    """Read back `partition_out`; whatever indexing into other JSON raises."""
    return PartitionState(
        next_offset=Offset(int(value["next_offset"])),
        position=position_in(value["position"]),
        gtids=_numbers_in(value["gtids"]),
        met_until=int(value.get("met_until", 0)),
        repeating=bool(value.get("repeating", False)),
        lossy=bool(value.get("lossy", False)),
        highest=_highest_in(value["highest"]) if "highest" in value else None,
        met_gtids=_met_in(value),
        last_transaction=_last_in(value),
    )


def _numbers_in(value: Any) -> dict[str, int]:
    return {str(stream): int(number) for stream, number in value.items()}


def _highest_in(value: Any) -> HighestChange:
    high, low = value["key"]
    return HighestChange(
        position_in(value["position"]),
        KeyHash(int(high), int(low)),
        int(value["op"]),
        int(value["digest"]),
        int(value["schema_version"]),
    )


def position_in(value: Any) -> Position:
    """Read a position from its two integers."""
    file, offset = value
    return Position(int(file), int(offset))


def integers_out(values: Mapping[int, int]) -> dict[str, int]:
    """Return a mapping from integers with names that JSON takes."""
    return {str(name): value for name, value in values.items()}


def parked_out(parked: ParkReason) -> dict[str, Any]:
    """Return, in the form of a manifest, why a table or one of its topics is parked."""
    return {
        "code": parked.code.value,
        "detail": parked.detail,
        "topic": parked.topic,
        "partition": parked.partition,
        "offset": parked.offset,
    }


def parked_in(value: Any) -> ParkReason:
    """Read back `parked_out`; whatever indexing into other JSON raises."""
    return ParkReason(
        ParkCode(value["code"]),
        str(value["detail"]),
        str(value["topic"]),
        int(value["partition"]),
        Offset(int(value["offset"])),
    )
