"""Requests: what a command asks the running driver to do, since it may not commit beside the
driver.

A request is a file in the lake; the driver executes it between batches and writes an answer. The
commit that executes a request records its id, so it is known to be done even if the driver died
before it answered. The command deletes the answer; an answer that nobody fetched is deleted after a
day.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from itertools import takewhile

from lakesplice.errors import CorruptFileError, MissingFileError, RetryableError
from lakesplice.model.moments import NO_MOMENT, EpochMs
from lakesplice.table.driver.generation import lease_of, newest_generation
from lakesplice.table.protocol.history import history
from lakesplice.table.protocol.layout import (
    ANSWERS,
    HEARTBEATS,
    REQUESTS,
    answer_path,
    release_path,
    request_path,
)
from lakesplice.table.protocol.ports import Clock, Store

REQUEST_PARAMETER = "request"
_ANSWERS_KEPT_MS = 86_400_000
_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """A command for a table (`database/table`); after `expires_ms` it isn't executed any more.

    `id` is random and belongs to this request forever.
    """

    id: str
    command: str
    table: str
    asked_by: str
    expires_ms: EpochMs
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """The result of a request, in words and as values of JSON; `done` says whether it was
    executed.
    """

    done: bool
    text: str
    expires_ms: EpochMs = NO_MOMENT
    facts: Mapping[str, object] = field(default_factory=dict)


_FIELDS = frozenset(one.name for one in fields(CommandRequest))
_NEWER = CommandAnswer(
    done=False,
    text="the service that runs is older than this command; use the command of its version",
)


def ask(
    lake: Store,
    request: CommandRequest,
    clock: Clock,
    wait: Callable[[float], object],
) -> CommandAnswer | None:
    """Ask the running driver and return its answer; None if no driver runs.

    Blocks until there is an answer, until no driver was heard for the lease of the last one, which
    also means that none runs, or until the request expires, which raises `RetryableError`. In the
    last two cases the request isn't executed later, unless that had begun. If a driver ends
    meanwhile, the next one executes the request.
    """
    if not _driver_may_live(lake):
        return None
    leave(lake, request)
    beat, since, lease = _beat(lake), clock.monotonic(), lease_of(lake, newest_generation(lake))
    while True:
        answer = _take_answer(lake, request)
        if answer is not None:
            return answer
        now = _beat(lake)
        if now != beat:
            beat, since = now, clock.monotonic()
            lease = lease_of(lake, newest_generation(lake))
        expired = clock.now_ms() > request.expires_ms
        if expired or clock.monotonic() - since >= lease:
            return _withdrawn(lake, request, expired=expired)
        wait(_POLL_SECONDS)


def leave(lake: Store, request: CommandRequest) -> None:
    """Leave a request to the driver, without waiting for its answer."""
    lake.put_new(request_path(request.id), json.dumps(asdict(request)).encode())


def is_pending(lake: Store, request: CommandRequest) -> bool:
    """Whether a request waits or is being executed."""
    return lake.size(request_path(request.id)) is not None


def pending(lake: Store) -> list[CommandRequest]:
    """Return the requests that wait, in no particular order. One of a newer command, which has
    fields that are unknown here, is refused; a damaged one is deleted.
    """
    found = []
    for path in lake.list(f"{REQUESTS}/"):
        try:
            values = json.loads(lake.read(path))
            request = CommandRequest(**{name: values[name] for name in _FIELDS if name in values})
        except MissingFileError:
            continue  # withdrawn meanwhile
        except (ValueError, TypeError):
            lake.delete(path)
            continue
        if values.keys() <= _FIELDS:
            found.append(request)
        else:
            answer(lake, request, _NEWER)
    return found


def answer(lake: Store, request: CommandRequest, given: CommandAnswer) -> None:
    """Write the answer and delete the request; may be called twice."""
    kept = {**asdict(given), "expires_ms": request.expires_ms + _ANSWERS_KEPT_MS}
    lake.put_new(answer_path(request.id), json.dumps(kept).encode())
    lake.delete(request_path(request.id))


def forget_answers(lake: Store, now_ms: EpochMs) -> None:
    """Delete the answers that no command fetched for a day."""
    for path in lake.list(f"{ANSWERS}/"):
        with suppress(MissingFileError, ValueError, KeyError, TypeError):
            if json.loads(lake.read(path))["expires_ms"] < now_ms:
                lake.delete(path)


def was_executed(table: Store, request: CommandRequest, since_ms: EpochMs) -> bool:
    """Whether a commit of the table since then executed the request."""
    entries = takewhile(lambda entry: (entry.info.timestamp_ms or 0) >= since_ms, history(table))
    return any(entry.info.parameters.get(REQUEST_PARAMETER) == request.id for entry in entries)


def _driver_may_live(lake: Store) -> bool:
    newest = newest_generation(lake)
    return newest > 0 and lake.size(release_path(newest)) is None


def _beat(lake: Store) -> str:
    return max(lake.list(f"{HEARTBEATS}/"), default="")


def _take_answer(lake: Store, request: CommandRequest) -> CommandAnswer | None:
    path = answer_path(request.id)
    if lake.size(path) is None:
        return None
    data = lake.read(path)
    try:
        given = CommandAnswer(**json.loads(data))
    except (ValueError, TypeError) as error:
        raise CorruptFileError(
            "an answer cannot be read; see the table's history for what was done", path=path
        ) from error
    lake.delete(path)
    return given


def _withdrawn(lake: Store, request: CommandRequest, *, expired: bool) -> CommandAnswer | None:
    lake.delete(request_path(request.id))
    given = _take_answer(lake, request)
    if given is None and expired:
        raise RetryableError(
            "the driver didn't answer in time; see the table's history, then try again",
            request=request.id,
            table=request.table,
        )
    return given
