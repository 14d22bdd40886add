"""Dead letters are replayed, or dropped.

A dead letter that can be decoded now becomes a change like any other. Positions and digests decide
whether it has an effect: it corrects its row, unless a newer change did, and never makes a row
older. A dead letter that still can't be decoded, or whose place in the order isn't proven
(`planning/sources/late_order.py`), stays with one more attempt counted. Each commit
replaces some files of dead letters. It is valid only if nothing was committed since it was planned;
otherwise it is planned again (`OpenDeadLetters.replay`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from lakesplice.errors import UsageError
from lakesplice.model.manifest import DeadLetterRef
from lakesplice.model.offsets import Offset
from lakesplice.model.progress.source_state import SourceState
from lakesplice.planning.intake.known_topic import KnownTopic
from lakesplice.planning.intake.late_records import ReplayedRecords, replay_records
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.schema.evolution import plan_evolution
from lakesplice.planning.sources.shards import unplaced
from lakesplice.table.files.dead_letters import (
    DeadLetter,
    DeadLetterSelection,
    dead_letters_of,
    groups_in,
    table_of,
    write_dead_letters,
)
from lakesplice.table.files.index_runs import RunCache
from lakesplice.table.ingest.append import AppendPlan, append
from lakesplice.table.ingest.dead_letter_groups import (
    by_partition,
    by_position_above,
    commit_shares,
    late_records,
    left_behind,
    records_of,
    source_after,
)
from lakesplice.table.ingest.fence import fence_deltas
from lakesplice.table.ingest.moved_row_deletes import with_moved_rows_deleted
from lakesplice.table.ingest.reshape import reshape
from lakesplice.table.protocol.commit import CommitIntent, Committed
from lakesplice.table.protocol.intents import Evolve, Intent, Replay
from lakesplice.table.protocol.ports import Clock, Entropy, SchemaSource, Store, schemas_of
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.protocol.snapshot import Snapshot, latest

DROP = "DROP LETTERS"
_ATTEMPTS_MAX = 20


@dataclass(frozen=True, slots=True)
class DeadLetterCounts:
    """How many dead letters were replayed or dropped, and how many of those chosen stay."""

    removed: int = 0
    kept: int = 0

    def __add__(self, other: DeadLetterCounts) -> DeadLetterCounts:
        """Add the counts."""
        return DeadLetterCounts(self.removed + other.removed, self.kept + other.kept)


@dataclass
class OpenDeadLetters:
    """The dead letters of a table, held by a process whose generation may commit.

    `commit` makes an intent the next version. `topic` is the topic of the dead letters, if several
    topics feed the table. Not thread-safe; every call blocks.
    """

    store: Store
    snapshot: Snapshot
    commit: CommitIntent
    generation: int
    clock: Clock
    entropy: Entropy
    topic: str = ""

    def replay(
        self,
        chosen: DeadLetterSelection,
        reading: RecordReading,
        registry: SchemaSource | None = None,
    ) -> DeadLetterCounts:
        """Replay the chosen dead letters. `reading` says how to decode them; `registry` has their
        schemas.

        A dead letter that was replayed is no longer stored, so a second call finds only those that
        stayed. `UsageError` if the table has no such topic; `RetryableError` if others keep
        committing first.
        """
        return self._over_files(lambda refs: self._replay(refs, chosen, reading, registry))

    def drop(self, chosen: DeadLetterSelection) -> DeadLetterCounts:
        """Delete the chosen dead letters without replaying them; errors as `replay`."""
        return self._over_files(lambda refs: self._drop(refs, chosen))

    def _over_files(
        self, work: Callable[[Sequence[DeadLetterRef]], DeadLetterCounts | None]
    ) -> DeadLetterCounts:
        total = DeadLetterCounts()
        refs = self.snapshot.manifest.letters_of(self._source().topic)
        for paths in commit_shares(refs, lambda ref: groups_in(self.store, ref)):
            retries = Retries(self.clock, self.entropy, _ATTEMPTS_MAX)
            while True:
                self.snapshot = latest(self.store, self.snapshot)
                live = self.snapshot.manifest.dead_letters
                done = work([ref for ref in live if ref.file.path in paths])
                if done is not None:
                    total += done
                    break
                retries.require_another(
                    "other writers committed first every time; replay the dead letters later"
                )
        return total

    def _replay(
        self,
        refs: Sequence[DeadLetterRef],
        chosen: DeadLetterSelection,
        reading: RecordReading,
        registry: SchemaSource | None,
    ) -> DeadLetterCounts | None:
        """Replay the chosen dead letters of some files; None if this has to be planned again."""
        dead_letters = dead_letters_of(self.store, refs)
        selected = [letter for letter in dead_letters if chosen.holds(letter)]
        if not selected:
            return DeadLetterCounts()
        again = self._read_again(
            [one for one in selected if not one.is_withheld], reading, registry
        )
        schema, _ = plan_evolution(
            self.snapshot.manifest.schema,
            [seen for part in again for seen in part.replayed.new_schemas],
            reading.policy,
            self._source().own_presences,
        )
        schema = unplaced(schema, self.snapshot.manifest.schema, self._source().shard)
        if schema != self.snapshot.manifest.schema:
            began, now = self.snapshot.version, self.snapshot.manifest
            replaced = reshape(self.store, now, schema, self.entropy)
            self._commit(Evolve.of(self.generation, now, schema, replaced, began))
            return None
        failed = {one.place: (one.reason, one.detail) for one in selected if one.is_withheld}
        failed |= {place: why for part in again for place, why in part.failed.items()}
        rest = [letter for letter in dead_letters if not chosen.holds(letter)]
        kept = [
            self._failed_again(one, failed[one.place]) for one in selected if one.place in failed
        ]
        done = DeadLetterCounts(len(selected) - len(kept), len(kept))
        applied = {part.partition: part.replayed.applied for part in again}
        left = left_behind([*rest, *kept], applied)
        intent = self._intent(refs, left, done, "replayed")
        source = source_after(self._source(), applied)
        intent = replace(intent, source=None if source == self._source() else source)
        intent = self._with_changes(intent, again, insert_only=reading.insert_only)
        intent = self._with_fence(intent, again)
        return done if self._commit(intent) else None

    def _drop(
        self, refs: Sequence[DeadLetterRef], chosen: DeadLetterSelection
    ) -> DeadLetterCounts | None:
        dead_letters = dead_letters_of(self.store, refs)
        rest = [letter for letter in dead_letters if not chosen.holds(letter)]
        done = DeadLetterCounts(len(dead_letters) - len(rest))
        if not done.removed:
            return done
        intent = replace(self._intent(refs, rest, done, "dropped"), operation=DROP)
        return done if self._commit(intent) else None

    def _read_again(
        self,
        dead_letters: Sequence[DeadLetter],
        reading: RecordReading,
        registry: SchemaSource | None,
    ) -> list[_Part]:
        source = self._source()
        known = KnownTopic(
            source.format,
            source.ordering,
            max(1, len(source.partitions)),
            source.epochs,
            False,
            source.own_presences,
            emptied=None if reading.keeps_versions else source.emptied,
        )
        parts = []
        for (topic, partition), share in by_partition(dead_letters):
            records = records_of(share)
            found = replay_records(
                records,
                reading,
                topic,
                partition,
                schema=self.snapshot.manifest.schema,
                known=replace(known, late=late_records(share, source, partition)),
                schemas=schemas_of([records], registry),
            )
            parts.append(_Part.of(partition, share, found))
        return parts

    def _source(self) -> SourceState:
        manifest = self.snapshot.manifest
        source = manifest.sources.get(self.topic) if self.topic else manifest.source
        if source is None:
            raise UsageError(
                "no topic of that name feeds the table, so it has no dead letters", topic=self.topic
            )
        return source

    def _with_changes(self, intent: Replay, parts: Sequence[_Part], *, insert_only: bool) -> Replay:
        """Write the changes, and return the intent with them."""
        changes = [table for part in parts for table in part.replayed.changes if table.num_rows]
        if not changes:
            return intent
        plan = AppendPlan.of(self.snapshot.manifest, self._source().topic, insert_only=insert_only)
        written = append(self.store, plan, changes, RunCache(), self.entropy)
        reports = [report for part in parts for report in part.replayed.reports if report.ordering]
        source = intent.source or self._source()
        changed = replace(
            intent,
            source=replace(
                source,
                format=source.format or reports[0].format,
                ordering=source.ordering or reports[0].ordering,
            ),
            files=written.files,
            deltas=written.deltas,
            runs=written.runs,
            counts={**intent.counts, **written.counts},
        )
        manifest, new = self.snapshot.manifest, written.files
        left = with_moved_rows_deleted(
            self.store, manifest, written.deltas, written.left, self.entropy, new
        )
        return replace(changed, replaced=left.replaced, images=left.images)

    def _with_fence(self, intent: Replay, parts: Sequence[_Part]) -> Replay:
        """If a dead letter contains a TRUNCATE, delete the rows that are older."""
        manifest, source = self.snapshot.manifest, intent.source or self._source()
        fence = max(
            (one.fence for part in parts for one in part.replayed.reports), default=source.fence
        )
        if fence <= source.fence or manifest.schema.keeps_versions:
            return intent
        new_deltas, now, source = intent.deltas, self.clock.now_ms(), replace(source, fence=fence)
        deltas, counts = fence_deltas(
            store=self.store,
            manifest=manifest,
            source=source,
            files=intent.files,
            deltas=new_deltas,
            now_ms=now,
            entropy=self.entropy,
        )
        return replace(
            intent,
            source=source,
            deltas=(*new_deltas, *deltas),
            counts={**intent.counts, **counts},
        )

    def _failed_again(self, letter: DeadLetter, why: tuple[str, str]) -> DeadLetter:
        reason, detail = why
        return replace(
            letter,
            reason=reason,
            detail=detail,
            last_seen=self.clock.now_ms(),
            attempts=letter.attempts + 1,
        )

    def _intent(
        self,
        refs: Sequence[DeadLetterRef],
        left: Sequence[DeadLetter],
        done: DeadLetterCounts,
        outcome: str,
    ) -> Replay:
        kept = tuple(
            replace(write_dead_letters(self.store, table_of(some), self.entropy), position=above)
            for above, some in by_position_above(left)
        )
        return Replay(
            self.generation,
            self.snapshot.version,
            frozenset(ref.file.path for ref in refs),
            kept,
            counts={f"letters_{outcome}": done.removed, "letters_kept": done.kept},
            topic=self._source().topic,
        )

    def _commit(self, intent: Intent) -> bool:
        outcome = self.commit(intent)
        if isinstance(outcome, Committed):
            self.snapshot = outcome.snapshot
        return isinstance(outcome, Committed)


@dataclass(frozen=True)
class _Part:
    """The replayed dead letters of one partition; `failed` by the records' places."""

    partition: int
    replayed: ReplayedRecords
    failed: Mapping[tuple[str, int, Offset], tuple[str, str]]

    @classmethod
    def of(
        cls, partition: int, dead_letters: Sequence[DeadLetter], replayed: ReplayedRecords
    ) -> _Part:
        failed = {dead_letters[at].place: why for at, why in replayed.failed.items()}
        return cls(partition, replayed, failed)
