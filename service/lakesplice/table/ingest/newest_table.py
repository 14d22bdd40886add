"""The newest snapshot of a table, and commits that are made on it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial

from lakesplice.errors import TableNotFoundError
from lakesplice.table.protocol.commit import (
    NO_PARAMETERS,
    Committed,
    Conflict,
    Planned,
    commit,
    commit_with_retries,
    create,
)
from lakesplice.table.protocol.intents import Create, Intent
from lakesplice.table.protocol.layout import probe_path
from lakesplice.table.protocol.ports import Clock, Entropy, Store
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.protocol.snapshot import Snapshot, find_snapshot, latest, open_snapshot

_ATTEMPTS_MAX = 10


class _Newest:
    """The newest snapshot of a table, shared by all objects of this table."""

    def __init__(self, snapshot: Snapshot | None) -> None:
        self.snapshot = snapshot
        self._lock = threading.Lock()

    def keep(self, snapshot: Snapshot) -> None:
        with self._lock:
            if self.snapshot is None or snapshot.version > self.snapshot.version:
                self.snapshot = snapshot


class NewestTable:
    """A table with the newest version that any object of it has seen. Safe from several threads.

    `beside` is another object of the same table, `known` a version of it that was read before, so
    that only later commits are read. Methods that commit block, and raise the errors of
    `lakesplice.table.protocol.commit.commit`.
    """

    def __init__(
        self,
        store: Store,
        generation: int,
        clock: Clock,
        entropy: Entropy,
        beside: NewestTable | None = None,
        known: Snapshot | None = None,
    ) -> None:
        self.store = store
        self.generation = generation
        self._newest: _Newest = (
            _Newest(_newest_version(store, known)) if beside is None else beside._newest  # noqa: SLF001
        )
        self._clock = clock
        self._entropy = entropy

    def require_writable(self) -> None:
        """Check that the table's log can be written, by a file that is deleted at once; raises
        `StorageError` if not.

        Blocks. Readers of the log skip names that begin with an underscore, as this one does.
        """
        path = probe_path(self._entropy)
        self.store.put_new(path, b"")
        self.store.delete(path)

    @property
    def snapshot(self) -> Snapshot | None:
        """The newest version known here."""
        return self._newest.snapshot

    @property
    def version(self) -> int:
        """The present version; 0 before the table is created."""
        return 0 if self.snapshot is None else self.snapshot.version

    def commit(
        self, intent: Intent, parameters: Mapping[str, str] = NO_PARAMETERS
    ) -> Committed | Conflict:
        """Commit, and keep the new snapshot; after a conflict, keep the snapshot that won the race.

        `parameters` are written into the history; they are not written when a table is created.
        """
        if isinstance(intent, Create):
            outcome = create(self.store, intent, clock=self._clock, entropy=self._entropy)
        else:
            known = self.snapshot or open_snapshot(self.store)
            outcome = commit(
                self.store,
                known,
                intent,
                clock=self._clock,
                entropy=self._entropy,
                parameters=parameters,
            )
        if isinstance(outcome, Committed):
            self.keep_newest(outcome.snapshot)
        elif self.snapshot is not None:
            self.keep_newest(latest(self.store, self.snapshot))
        return outcome

    def retries(self, attempts_max: int = _ATTEMPTS_MAX) -> Retries:
        """Return a counter of attempts for something that other writers of the table may
        prevent.
        """
        return Retries(self._clock, self._entropy, attempts_max)

    def commit_with_retries(
        self,
        plan: Callable[[], Planned | None],
        what: str,
        parameters: Mapping[str, str] = NO_PARAMETERS,
        **facts: object,
    ) -> Planned | None:
        """See `lakesplice.table.protocol.commit.commit_with_retries`; `what` says what wasn't done
        if other writers always committed first.
        """
        message = f"other writers committed first every time, so {what}"
        commit_intent = partial(self.commit, parameters=parameters)
        return commit_with_retries(plan, commit_intent, self.retries(), message, **facts)

    def keep_newest(self, snapshot: Snapshot) -> None:
        """Make a snapshot the newest that is known here, unless a newer one is known already.

        Is called after each commit, and after a conflict with the version that won the race.
        """
        self._newest.keep(snapshot)


def _newest_version(store: Store, known: Snapshot | None) -> Snapshot | None:
    """Return the table's newest version; None if there is no table, or no longer."""
    if known is None:
        return find_snapshot(store)
    try:
        return latest(store, known)
    except TableNotFoundError:
        return None
