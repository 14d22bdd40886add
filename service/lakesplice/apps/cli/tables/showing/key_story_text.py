"""The story of a key: as text for people in 80 columns, and as values of JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from lakesplice.apps.cli.output import printable
from lakesplice.model.address import group_name
from lakesplice.model.moments import EpochMs, utc_time
from lakesplice.model.position import BEFORE_ALL, Ordering, Position
from lakesplice.table.explaining.key_story import KeyStory
from lakesplice.table.explaining.record_values import RecordFate, RecordOutcome
from lakesplice.table.explaining.version_walk import Effect, IndexEntry, KeyChange
from lakesplice.table.files.dead_letters import DeadLetter

_WIDTH = 80
_INDENT = 9

_OUTCOMES = {
    RecordOutcome.APPLIED: "applied: the row got its values",
    RecordOutcome.FOLDED: "folded into the change at {by} of the same batch",
    RecordOutcome.REPEATED: "the row already had this change: no effect",
    RecordOutcome.OLDER: "older than the row, which was at {by}: no effect",
    RecordOutcome.BELOW_FENCE: "below the fence {by} (TRUNCATE, DROP or snapshot): no effect",
    RecordOutcome.BELOW_FLOOR: "below the purge floor {by}: the row may have been purged; no"
    " effect",
    RecordOutcome.ERASED: "of a row that was erased after it: no effect",
    RecordOutcome.DUPLICATE: "the insert-only table already had the key: no effect",
    RecordOutcome.IGNORED: "not a change (a tombstone of Kafka, for example)",
    RecordOutcome.DEAD_LETTER: "dead letter, {reason}",
    RecordOutcome.STOPPED: "not read: the table stops at this record or before it, {reason}",
    RecordOutcome.UNREAD: "not read by the table yet",
    RecordOutcome.BEFORE_HISTORY: "read before the oldest retained version, where the row is"
    " at {by}",
    RecordOutcome.UNEXPLAINED: "today's configuration decodes the record otherwise than the one at"
    " that time",
}
_EFFECTS = {
    Effect.PRESENT: "the row exists, at {position}",
    Effect.INSERTED: "inserted at {position}",
    Effect.UPDATED: "updated at {position}",
    Effect.DELETED: "deleted at {position}",
    Effect.MOVED: "moved to another partition at {position}",
    Effect.OLDER: "a change at {position} had no effect: the row was at {before}",
    Effect.MERGED: "merged into a base file: all readers see the row as of {position}",
    Effect.READDRESSED: "{operation} moved the row to another file group",
    Effect.PURGED: "purged: the deleted row was removed for good",
    Effect.RESTORED: "{operation}: the row is as of {position}",
}


def story_lines(story: KeyStory, ordering: Ordering, *, values: bool) -> Iterator[str]:
    """Yield the story as lines of at most 80 columns, except for longer words."""
    texts = _Texts(ordering, values=values)
    key = ", ".join(f"{name} = {printable(str(v))}" for name, v in story.key.values.items())
    yield from _line("key", key)
    yield from _line("hash", story.key.digits)
    table_line = f"version {story.version}"
    if story.vacuumed:
        table_line += f"; versions below {story.first} are vacuumed"
    yield from _line("table", table_line)
    for parked in story.parked:
        detail = f": {parked.detail}" if values else ""
        yield from _line("parked", f"{parked.topic} {parked.code}{printable(detail)}".strip())
    for entry in story.entries:
        yield from _line("index", _entry_text(entry))
    if not story.entries:
        yield from _line("index", "no run has the key")
    for text in texts.row(story):
        yield from _line("row", text)
    for change in story.changes:
        yield from _line("version", texts.change(change))
    for letter in story.dead_letters:
        yield from _line("letter", texts.letter(letter))
    if story.unclear_dead_letters:
        count = story.unclear_dead_letters
        yield from _line("letter", f"the keys of {count} dead letters can't be compared")
    for fate in story.records:
        yield from _line("record", texts.record(fate))
    for missing in story.left_out:
        yield from _line("unread", missing)


def story_facts(story: KeyStory, ordering: Ordering, *, values: bool) -> dict[str, Any]:
    """Return the story as values of JSON. Positions are texts in the form that the source uses."""
    texts, row = _Texts(ordering, values=values), story.row
    return {
        "key": dict(story.key.values),
        "hash": story.key.digits,
        "version": story.version,
        "first_version": story.first,
        "vacuumed": story.vacuumed,
        "parked": [{"topic": one.topic, "code": one.code} for one in story.parked],
        "index": [
            {
                "run": entry.run,
                "group": group_name(entry.address[0]),
                "row": entry.address[1],
                "live": entry.live,
                "decides": entry.decides,
            }
            for entry in story.entries
        ],
        "row": None
        if row is None
        else {
            "path": row.path,
            "group": group_name(row.address[0]),
            "row": row.address[1],
            "deleted": row.deleted,
            "position": texts.place(row.position),
            "base_position": texts.place(row.base_position),
            "source_ts": row.source_ts,
            "waiting": row.waiting.num_rows,
            **({"values": row.values} if values else {}),
        },
        "changes": [texts.change_facts(change) for change in story.changes],
        "dead_letters": [texts.letter_facts(letter) for letter in story.dead_letters],
        "unclear_dead_letters": story.unclear_dead_letters,
        "records": [texts.record_facts(fate) for fate in story.records],
        "left_out": list(story.left_out),
    }


class _Texts:
    """Texts about positions of one ordering, with values of rows or without."""

    def __init__(self, ordering: Ordering, *, values: bool) -> None:
        self._ordering = ordering
        self._values = values

    def place(self, position: Position | None) -> str | None:
        """Return a position in the form that the source uses; None if there is none."""
        if position is None or position == BEFORE_ALL:
            return None
        _, _, offset, row, rank = position.parts
        match self._ordering:
            case Ordering.COMMIT:
                return f"upsert {position.offset}"
            case Ordering.TIDB:
                return f"timestamp {position.offset >> 1}"
            case Ordering.KAFKA:
                return f"offset {offset}:{row}:{rank}"
            case Ordering.BINLOG:
                return str(position)

    def row(self, story: KeyStory) -> Iterator[str]:
        row = story.row
        if row is None:
            yield "none"
            return
        state = "deleted" if row.deleted else "lives"
        when = "" if row.source_ts is None else f", changed at {_time(row.source_ts)}"
        yield f"{state}, at {self.place(row.position)}{when}"
        yield f"row {row.address[1]} of group {group_name(row.address[0])} in {row.path}"
        if row.waiting.num_rows:
            base = self.place(row.base_position)
            yield f"{row.waiting.num_rows} changes wait; the base file has the row as of {base}"
        yield from (f"{name} = {_value(value)}" for name, value in row.values.items())

    def change(self, change: KeyChange) -> str:
        text = _EFFECTS[change.effect].format(
            position=self.place(change.position),
            before=self.place(change.position_before),
            operation=change.operation.lower(),
        )
        if change.columns and change.effect is Effect.UPDATED:
            text += f" ({', '.join(change.columns)})"
        if change.values and change.effect in (Effect.INSERTED, Effect.UPDATED):
            text += ": " + ", ".join(f"{n} = {_value(v)}" for n, v in change.values.items())
        return f"{change.version} {_moment(change.time_ms)} {text}"

    def change_facts(self, change: KeyChange) -> dict[str, Any]:
        return {
            "version": change.version,
            "time": _moment(change.time_ms),
            "operation": change.operation,
            "effect": change.effect,
            "op": change.op,
            "position": self.place(change.position),
            "position_before": self.place(change.position_before),
            "source_ts": change.source_ts,
            "columns": change.columns,
            **({"values": change.values} if self._values else {}),
        }

    def letter(self, letter: DeadLetter) -> str:
        detail = f": {printable(letter.detail)}" if self._values else ""
        place = f"{letter.topic} {letter.partition}:{letter.offset}"
        return f"{place} {letter.reason}{detail}, last tried {_moment(letter.last_seen)}"

    def letter_facts(self, letter: DeadLetter) -> dict[str, Any]:
        return {
            "topic": letter.topic,
            "partition": letter.partition,
            "offset": letter.offset,
            "reason": letter.reason,
            "first_seen": _moment(letter.first_seen),
            "last_seen": _moment(letter.last_seen),
            "attempts": letter.attempts,
            **({"detail": letter.detail} if self._values else {}),
        }

    def record(self, fate: RecordFate) -> str:
        detail = f": {fate.detail}" if fate.detail and self._values else ""
        text = _OUTCOMES[fate.outcome].format(
            by=self.place(fate.by) or "no row", reason=printable(fate.reason + detail)
        )
        version = "" if fate.version is None else f" version {fate.version}"
        what = "" if fate.op is None else f", {fate.op} at {self.place(fate.position)}"
        return f"{fate.topic} {fate.partition}:{fate.offset}{what};{version} {text}"

    def record_facts(self, fate: RecordFate) -> dict[str, Any]:
        return {
            "topic": fate.topic,
            "partition": fate.partition,
            "offset": fate.offset,
            "time": _moment(fate.time_ms),
            "outcome": fate.outcome,
            "version": fate.version,
            "op": fate.op,
            "position": self.place(fate.position),
            "by": self.place(fate.by),
            "reason": fate.reason,
            **({"detail": fate.detail} if self._values else {}),
        }


def _entry_text(entry: IndexEntry) -> str:
    place = f"row {entry.address[1]} of group {group_name(entry.address[0])}, by {entry.run}"
    if not entry.decides:
        return f"{place}: an older address"
    return place if entry.live else f"{place}: the group was removed, so the key is unknown"


def _line(name: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=f"{name:<{_INDENT}}",
        subsequent_indent=" " * _INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _time(moment: datetime) -> str:
    return moment.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")


def _moment(time_ms: EpochMs) -> str:
    try:
        return _time(utc_time(time_ms))
    except (ValueError, OverflowError, OSError):
        return str(time_ms)


def _value(value: Any) -> str:
    if value is None:
        return "null"
    return printable(f"0x{value.hex()}" if isinstance(value, bytes) else str(value))
