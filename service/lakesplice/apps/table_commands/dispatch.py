"""Commands that change a table: sent to the running driver, or executed here if no driver runs.

A command doesn't commit beside a living driver: only the driver commits to tables that a source
feeds. If no driver runs, the command takes the next generation for as long as it works.
"""

from __future__ import annotations

import getpass
import logging
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from lakesplice.apps.lake import lake_of
from lakesplice.apps.table_commands.command_table import CommandResult, CommandTable
from lakesplice.apps.table_commands.work import ONCE, execute
from lakesplice.config import Settings, settings_for
from lakesplice.errors import FencedError, LakespliceError, UsageError
from lakesplice.model.moments import EpochMs, later
from lakesplice.model.names import TableName
from lakesplice.storage.stores import AnyStore
from lakesplice.storage.system import SystemClock, SystemEntropy
from lakesplice.table.driver.generation import BEATS_PER_LEASE, Generation, Wait, take_generation
from lakesplice.table.driver.requests import (
    REQUEST_PARAMETER,
    CommandAnswer,
    CommandRequest,
    ask,
    was_executed,
)
from lakesplice.table.protocol.commit import Committed, Conflict, commit
from lakesplice.table.protocol.intents import Intent
from lakesplice.table.protocol.layout import random_name
from lakesplice.table.protocol.ports import UNWATCHED, Clock, Entropy, Progress, Store
from lakesplice.table.protocol.snapshot import Snapshot, open_snapshot

WAIT_SECONDS = 600.0
# A driver that wasn't heard for a lease is known to be dead.
_WAITS_MAX = BEATS_PER_LEASE + 2
# Each thread only waits, and looks for its answer twice a second.
_REQUESTS_AT_ONCE = 64
# A request is searched in the history from this long before it expired.
_EXECUTED_WITHIN_MS = 2 * 3_600_000


@dataclass(frozen=True, slots=True)
class RequestWait:
    """How long a command waits for the driver, and how; tests wait differently."""

    seconds_max: float = WAIT_SECONDS
    clock: Clock = field(default_factory=SystemClock)
    wait: Callable[[float], None] = time.sleep


def give_command(
    address: str | Path,
    command: str,
    arguments: Mapping[str, Any],
    *,
    settings: Settings | None = None,
    patience: RequestWait = RequestWait(),
    options: Mapping[str, str] | None = None,
    progress: Progress = UNWATCHED,
) -> CommandResult:
    """Give a command about the table at an address; return its result.

    `settings` are for where no driver runs, which has its own; `options` say how the lake's store
    is reached. `progress` sees the work if it is done here. Blocks until the driver did it, or for
    about a lease and the work itself where none runs. `RetryableError` if a driver that lives
    doesn't answer in time; `UsageError` if it refuses, or the arguments are not valid.
    """
    lake, name = lake_of(address, options)
    request = _request(name, command, arguments, patience)
    answered = ask(lake, request, patience.clock, patience.wait)
    if answered is not None:
        return _accepted(answered, name)
    with _generation(lake, patience) as generation:
        return _executed_here(lake, request, generation, patience.clock, settings, progress)


def give_to_each(
    lake: AnyStore,
    names: Sequence[TableName],
    command: str,
    arguments: Mapping[str, Any],
    patience: RequestWait,
) -> dict[TableName, CommandResult]:
    """Give a command for each of some tables of a lake; return the results.

    The running driver gets all requests at once, so that it stops its queries only once. Otherwise
    as `give_command`; after an error some tables may have executed it.
    """
    done: dict[TableName, CommandResult] = {}
    for name, result in results_of_each(lake, names, command, arguments, patience).items():
        if isinstance(result, LakespliceError):
            raise result
        done[name] = result
    return done


def results_of_each(
    lake: AnyStore,
    names: Sequence[TableName],
    command: str,
    arguments: Mapping[str, Any],
    patience: RequestWait,
    settings: Settings | None = None,
) -> dict[TableName, CommandResult | LakespliceError]:
    """Do the same, and return for each table the result or the error: a table that refuses doesn't
    affect the others. Raises what concerns no table, such as that another driver took over.
    """
    requests = {name: _request(name, command, arguments, patience) for name in names}

    def asked(name: TableName) -> CommandAnswer | None:
        return ask(lake, requests[name], patience.clock, patience.wait)

    with ThreadPoolExecutor(_REQUESTS_AT_ONCE, "requests") as pool:
        answers = dict(zip(names, pool.map(asked, names), strict=True))
    done = {
        name: _or_error(partial(_accepted, answered, name))
        for name, answered in answers.items()
        if answered
    }
    left = [name for name in names if name not in done]
    if left:
        with _generation(lake, patience) as generation:

            def here(name: TableName) -> CommandResult:
                return _executed_here(lake, requests[name], generation, patience.clock, settings)

            done |= {name: _or_error(partial(here, name)) for name in left}
    return {name: done[name] for name in names}


def _or_error(work: Callable[[], CommandResult]) -> CommandResult | LakespliceError:
    try:
        return work()
    except FencedError:
        raise
    except LakespliceError as error:
        return error


def ask_driver(
    lake: AnyStore,
    name: TableName,
    command: str,
    arguments: Mapping[str, Any],
    patience: RequestWait,
) -> CommandResult | None:
    """Give a command about a table of a lake to the driver that runs; None if none does.

    Otherwise as `give_command`.
    """
    request = _request(name, command, arguments, patience)
    answered = ask(lake, request, patience.clock, patience.wait)
    return None if answered is None else _accepted(answered, name)


def _request(
    name: TableName, command: str, arguments: Mapping[str, Any], patience: RequestWait
) -> CommandRequest:
    return CommandRequest(
        random_name(SystemEntropy()),
        command,
        name.path,
        _who(),
        later(patience.clock.now_ms(), patience.seconds_max),
        arguments,
    )


def _accepted(answered: CommandAnswer, name: TableName) -> CommandResult:
    if not answered.done:
        raise UsageError(f"the driver refused: {answered.text}", table=str(name))
    return CommandResult(f"{answered.text} (by the running driver)", answered.facts)


def answer_of(request: CommandRequest, table: CommandTable) -> CommandAnswer:
    """Execute a request as a driver; a refusal is an answer, too.

    `FencedError` leaves the request to the driver that took over.
    """
    try:
        if request.command in ONCE and _was_done(request, table.store):
            return CommandAnswer(True, "the request was executed before; see the table's history")
        done = execute(request.command, table, request.arguments)
    except FencedError:
        raise
    except LakespliceError as error:
        return CommandAnswer(False, str(error))
    return CommandAnswer(True, done.text, facts=done.facts)


def _executed_here(
    lake: Store,
    request: CommandRequest,
    generation: Generation,
    clock: Clock,
    settings: Settings | None,
    progress: Progress = UNWATCHED,
) -> CommandResult:
    """Execute a request under a generation of its own; errors as in `execute`."""
    table = command_table(
        lake,
        request,
        generation,
        clock,
        SystemEntropy(),
        progress=progress,
        settings=settings,
    )
    return execute(request.command, table, request.arguments)


def command_table(
    lake: Store,
    request: CommandRequest,
    generation: Generation,
    clock: Clock,
    entropy: Entropy,
    *,
    progress: Progress = UNWATCHED,
    settings: Settings | None = None,
) -> CommandTable:
    """Return a request's table, opened for it; `TableNotFoundError` if it doesn't exist."""
    store = lake.within(request.table)
    known = open_snapshot(store)

    def commit_as(intent: Intent, parameters: Mapping[str, str]) -> Committed | Conflict:
        generation.check()
        return commit(store, known, intent, clock=clock, entropy=entropy, parameters=parameters)

    return CommandTable(
        store=store,
        snapshot=known,
        generation=generation.number,
        clock=clock,
        entropy=entropy,
        commit_as=commit_as,
        history_parameters=history_parameters(request),
        progress=progress,
        settings=settings_of_table(settings, request, known),
    )


def settings_of_table(
    settings: Settings | None, request: CommandRequest, table: Snapshot
) -> Settings | None:
    """Return the settings for the table of a request: those of history tables differ."""
    if settings is None:
        return None
    return settings_for(settings, TableName.from_path(request.table), table.manifest.sources)


def history_parameters(request: CommandRequest) -> dict[str, str]:
    """Return what the commits of a request write about it into the history."""
    return {REQUEST_PARAMETER: request.id, "by": request.asked_by}


def _was_done(request: CommandRequest, store: Store) -> bool:
    return was_executed(store, request, EpochMs(request.expires_ms - _EXECUTED_WITHIN_MS))


@contextmanager
def _generation(lake: AnyStore, patience: RequestWait) -> Iterator[Generation]:
    log = logging.getLogger("lakesplice")
    generation = take_generation(
        lake,
        patience.clock,
        _for_a_lease(patience.wait),
        unexpected=lambda error: log.error("a heartbeat failed", exc_info=error),
    )
    if generation is None:
        raise UsageError(
            "a service of this lake has just started; run the command again", lake=str(lake)
        )
    try:
        yield generation
    finally:
        generation.release()


def _for_a_lease(wait: Callable[[float], None]) -> Wait:
    """Return a wait that gives up after more than a lease."""
    waits = 0

    def once_more(seconds: float) -> bool:
        nonlocal waits
        if waits >= _WAITS_MAX:
            return False
        waits += 1
        wait(seconds)
        return True

    return once_more


def _who() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "somebody"
    return f"{user}@{socket.gethostname()}"
