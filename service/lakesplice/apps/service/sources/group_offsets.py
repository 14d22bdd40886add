"""Keeps the offsets of a consumer group at what tables have committed, and honours a reset of them.

A group's offsets that another client has set are a request to read from there. The request is left
in the lake like that of a command, so that it is executed, answered and kept in the history by the
same code. Offsets count as set by others only in a group that this lake has written before: one
that it meets for the first time may have been used by another consumer.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Protocol

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import DriverTables, ServiceTable
from lakesplice.apps.table_commands.resetting import reset_request
from lakesplice.errors import SourceUnavailable
from lakesplice.model.moments import later
from lakesplice.model.offsets import Offset, Offsets
from lakesplice.spark.kafka.consumer_group import GroupOffset, TopicPartition
from lakesplice.table.driver.requests import CommandRequest, is_pending, leave
from lakesplice.table.protocol.layout import group_path, random_name

_REQUEST_SECONDS = 600.0


class Group(Protocol):
    """See `ConsumerGroup`."""

    name: str

    def offsets(self) -> Mapping[TopicPartition, GroupOffset]:
        """See `ConsumerGroup.offsets`."""

    def write(self, offsets: Mapping[TopicPartition, Offset]) -> None:
        """See `ConsumerGroup.write`."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A reset that was asked for."""

    offsets: Offsets
    requests: tuple[CommandRequest, ...]


_NOTHING = _Asked({}, ())


@dataclass
class GroupOffsets:
    """The group of one lake; used by the main loop's thread."""

    driver: Driver
    tables: DriverTables
    group: Group
    _known: dict[TopicPartition, Offset] = field(default_factory=dict)
    _asked: dict[str, _Asked] = field(default_factory=dict)
    _look_at: float = 0.0
    _trouble: str | None = None
    _is_owned: bool = False

    def follow(self) -> bool:
        """Write what was committed since the last call; True if a reset was found and asked for.

        Does nothing if nothing was committed and it isn't yet time to look for resets. Blocks for
        at most the request timeout twice. A broker that doesn't answer or refuses is logged, and
        asked again after `kafka.topic_poll_seconds`.
        """
        now, standing = self.driver.clock.monotonic(), self._standing()
        if now < self._look_at and (self._trouble or standing == self._known):
            return False
        self._look_at = now + self.driver.settings.kafka.topic_poll_seconds
        if not standing:
            return False
        try:
            asked = self._exchange(standing)
        except SourceUnavailable as error:
            self._note(str(error))
            return False
        self._note("")
        return asked

    def _standing(self) -> dict[TopicPartition, Offset]:
        """Return the next offset of each partition that a table has read: the lower one, if two
        tables read it.
        """
        standing: dict[TopicPartition, Offset] = {}
        for table in self.tables.of_topics():
            for at, state in table.source.partitions.items() if table.snapshot is not None else ():
                place = table.topic, at
                standing[place] = min(state.next_offset, standing.get(place, state.next_offset))
        return standing

    def _exchange(self, standing: dict[TopicPartition, Offset]) -> bool:
        found = self.group.offsets()
        is_new_reset = False
        if self._owns(found.keys() & standing.keys()):
            is_new_reset = self._ask_for(_set_by_others(found, standing))
        stale = {
            (topic, at): offset
            for (topic, at), offset in standing.items()
            if at not in self._asked.get(topic, _NOTHING).offsets
            and found.get((topic, at)) != GroupOffset(offset, is_ours=True)
        }
        if stale:
            self.group.write(stale)
        self._known = standing
        return is_new_reset

    def _owns(self, shared: Set[TopicPartition]) -> bool:
        """Return whether this lake wrote to the group before; from now on it has."""
        if self._is_owned:
            return True
        lake, path = self.driver.lake, group_path(self.group.name)
        self._is_owned = True
        if lake.size(path) is not None:
            return True
        lake.put_new(path, b"")
        if shared:
            self.driver.log.warning(
                "group-taken-over", group=self.group.name, partitions=len(shared)
            )
        return False

    def _ask_for(self, resets: Mapping[str, Offsets]) -> bool:
        """Ask for the resets that weren't asked for; True if there was any. What was answered is
        forgotten: honoured or refused, the table's own offset is the right one again.
        """
        answered = {
            topic: asked
            for topic, asked in self._asked.items()
            if not any(is_pending(self.driver.lake, one) for one in asked.requests)
        }
        for topic in answered:
            del self._asked[topic]
        new = {
            topic: offsets
            for topic, offsets in resets.items()
            if topic not in self._asked and answered.get(topic, _NOTHING).offsets != offsets
        }
        for table in self.tables.of_topics():
            if table.topic in new:
                self._leave(table, new[table.topic])
        return bool(new)

    def _leave(self, table: ServiceTable, offsets: Offsets) -> None:
        driver, by = self.driver, f"consumer group {self.group.name}"
        request = CommandRequest(
            random_name(driver.entropy),
            "reset",
            table.name.path,
            by,
            later(driver.clock.now_ms(), _REQUEST_SECONDS),
            # Who sets a group's offsets forward has decided to skip records.
            reset_request(table.topic, offsets, f"another client set the offsets of {by}"),
        )
        leave(driver.lake, request)
        before = self._asked.get(table.topic, _NOTHING).requests
        self._asked[table.topic] = _Asked(offsets, (*before, request))
        driver.log.warning(
            "group-reset",
            group=self.group.name,
            table=str(table.name),
            topic=table.topic,
            offsets=dict(offsets),
            request=request.id,
        )

    def _note(self, trouble: str) -> None:
        """Log trouble with the group once, and its end."""
        if trouble != self._trouble:
            if trouble:
                self.driver.log.warning(
                    "group-offsets-unsent", group=self.group.name, error=trouble
                )
            else:
                self.driver.log.info("group-offsets-sent", group=self.group.name)
        self._trouble = trouble


def _set_by_others(
    found: Mapping[TopicPartition, GroupOffset], standing: Mapping[TopicPartition, Offset]
) -> dict[str, dict[int, Offset]]:
    """Return by topic and partition the offsets that others set and where the table isn't."""
    resets: dict[str, dict[int, Offset]] = {}
    for (topic, at), entry in sorted(found.items()):
        here = standing.get((topic, at))
        if here is not None and not entry.is_ours and entry.offset != here:
            resets.setdefault(topic, {})[at] = entry.offset
    return resets
