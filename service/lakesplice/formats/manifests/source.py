"""The source of a table in its manifest: how far its partitions are, epochs, fence, snapshot.

Values of the ordinary case are left out. Source: docs/format.md, "Manifest".
"""

from __future__ import annotations

from typing import Any

from lakesplice.formats.manifests.partition import (
    integers_out,
    last_in,
    met_in,
    met_out,
    numbers_in,
    partition_in,
    partition_out,
    position_in,
    transaction_out,
)
from lakesplice.model.choices import FormatName
from lakesplice.model.moments import EpochUs
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.position import BEFORE_ALL, Ordering
from lakesplice.model.progress.column_presence import ColumnPresence, ColumnPresences
from lakesplice.model.progress.epochs import Epoch
from lakesplice.model.progress.gap import Gap
from lakesplice.model.progress.met_gtids import MetGtids
from lakesplice.model.progress.source_state import Emptied, SnapshotState, SourceState


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
    if source.emptied is not None:
        value["emptied"] = _emptied_out(source.emptied)
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
        value["met_gtids"] = met_out(gap.met.read)
        if gap.met.last is not None:
            value["last_transaction"] = transaction_out(gap.met.last)
    return value


def _gap_in(value: Any, topic_id: str) -> Gap:
    return Gap(
        str(value.get("topic_id", topic_id)),
        int(value["partition"]),
        Offset(int(value["start"])),
        None if value["end"] is None else Offset(int(value["end"])),
        position_in(value["after"]),
        position_in(value["before"]) if "before" in value else None,
        met=MetGtids(read, last_in(value)) if (read := met_in(value)) else None,
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


def _epoch_out(epoch: Epoch) -> dict[str, Any]:
    return {
        "number": epoch.number,
        "stream": epoch.stream,
        "first": epoch.first,
        "position": [epoch.position.file, epoch.position.offset],
        "before": dict(epoch.before),
        "entered": integers_out(epoch.entered),
    }


def _emptied_out(emptied: Emptied) -> dict[str, Any]:
    return {
        "position": [emptied.position.file, emptied.position.offset],
        "gtids": dict(emptied.gtids),
        "moment": emptied.moment,
    }


def _emptied_in(value: Any) -> Emptied:
    return Emptied(
        position_in(value["position"]),
        numbers_in(value["gtids"]),
        EpochUs(int(value["moment"])),
    )


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
        emptied=_emptied_in(value["emptied"]) if "emptied" in value else None,
        snapshot=_snapshot_in(value["snapshot"]) if "snapshot" in value else None,
        purge_floor=position_in(value["purge_floor"]) if "purge_floor" in value else BEFORE_ALL,
        shard=tuple((str(name), str(text)) for name, text in value.get("shard", {}).items()),
        keys_version=int(value.get("keys_version", 0)),
        parked=parked_in(value["parked"]) if "parked" in value else None,
        presences=_presences_in(value.get("columns", ())),
        gaps=tuple(_gap_in(gap, str(value["topic_id"])) for gap in value.get("gaps", ())),
    )


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
