"""The state of a source's partition in a manifest, and what it has met.

Values of the ordinary case are left out. Source: docs/format.md, "Source".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakesplice.model.arrays import KeyHash
from lakesplice.model.moments import EpochUs
from lakesplice.model.offsets import Offset
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.met_gtids import GtidNumbers, GtidRange, GtidRanges, Transaction
from lakesplice.model.progress.source_state import HighestChange, PartitionState


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
        value["met_gtids"] = met_out(state.met_gtids)
        value["recent_gtids"] = {}  # versions that don't know ranges take nothing for met
    if state.last_transaction is not None:
        value["last_transaction"] = transaction_out(state.last_transaction)
    if state.newest_us is not None:
        value["newest_us"] = state.newest_us
    return value


def met_out(met: GtidRanges) -> dict[str, Any]:
    """Return what a partition has read in the form of JSON."""
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


def met_in(value: Any) -> GtidRanges | None:
    """Return what the state of a partition or a gap says was read; None if it says nothing."""
    if "met_gtids" in value:
        met = value["met_gtids"]
        return GtidRanges(
            tuple(_range_in(part) for part in met["ranges"]),
            bool(met.get("whole", False)),
            numbers_in(met.get("since_missing", {})),
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
    highest, starts = numbers_in(value["recent_gtids"]), numbers_in(value.get("recent_from", {}))
    numbers = {
        name: GtidNumbers(starts.get(name, 0), number + 1)
        for name, number in highest.items()
        if starts.get(name, 0) <= number
    }
    ranges = (GtidRange(numbers),) if numbers else ()
    return GtidRanges(ranges, whole=False, since_missing=highest)


def transaction_out(transaction: Transaction) -> dict[str, Any]:
    """Return the transaction that was read last in the form of JSON."""
    value: dict[str, Any] = {
        "stream": transaction.stream,
        "number": transaction.number,
        "position": [transaction.position.file, transaction.position.offset],
    }
    if transaction.executed:
        value["executed"] = dict(transaction.executed)
    return value


def last_in(value: Any) -> Transaction | None:
    """Return the transaction that was read last, of a partition or a gap; None without one."""
    if "last_transaction" not in value:
        return None
    value = value["last_transaction"]
    return Transaction(
        str(value["stream"]),
        int(value["number"]),
        position_in(value["position"]),
        numbers_in(value.get("executed", {})),
    )


def _highest_out(change: HighestChange) -> dict[str, Any]:
    return {
        "position": [change.position.file, change.position.offset],
        "key": list(change.key),
        "op": change.op,
        "digest": change.digest,
        "schema_version": change.schema_version,
    }


def partition_in(value: Any) -> PartitionState:
    """Read back `partition_out`; whatever indexing into other JSON raises."""
    return PartitionState(
        next_offset=Offset(int(value["next_offset"])),
        position=position_in(value["position"]),
        gtids=numbers_in(value["gtids"]),
        met_until=int(value.get("met_until", 0)),
        repeating=bool(value.get("repeating", False)),
        lossy=bool(value.get("lossy", False)),
        highest=_highest_in(value["highest"]) if "highest" in value else None,
        met_gtids=met_in(value),
        last_transaction=last_in(value),
        newest_us=EpochUs(int(value["newest_us"])) if "newest_us" in value else None,
    )


def numbers_in(value: Any) -> dict[str, int]:
    """Read numbers by stream."""
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
