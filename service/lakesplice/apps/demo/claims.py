"""What a demo has for itself while it runs: its folder and its usual ports. A second demo at the
same time is told so, or gets other ports.
"""

from __future__ import annotations

import fcntl
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from lakesplice.errors import UsageError
from lakesplice.testing.servers.process import free_port

_MARK: Final = ".lakesplice-demo"


@contextmanager
def claimed_folder(folder: Path) -> Iterator[None]:
    """Have a folder alone while the block runs; it is made if it doesn't exist.

    `UsageError` if it contains anything else than an earlier demo, or if another demo runs there.
    """
    mark = folder / _MARK
    if not mark.exists() and folder.exists() and any(folder.iterdir()):
        raise UsageError(
            "the folder contains something else; name another one with --folder",
            folder=str(folder),
        )
    folder.mkdir(parents=True, exist_ok=True)
    with mark.open("a") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(
                "another demo runs in this folder; stop it, or name another folder with --folder",
                folder=str(folder),
            ) from None
        yield


def claimed_port(wanted: int, until: ExitStack) -> int:
    """Return a port on which no process listens: the one wanted, unless another demo has it or is
    about to listen on it. It is this demo's until the stack is closed.
    """
    port = wanted
    while True:
        with ExitStack() as attempt:
            claim = attempt.enter_context(socket.socket(socket.AF_UNIX))
            try:
                # In Linux's abstract namespace: the name ends with the process and leaves no file.
                claim.bind(f"\0lakesplice-demo-port-{port}")
            except OSError:  # another demo has it
                port = free_port()
                continue
            found = free_port(port)
            if found == port:
                until.push(attempt.pop_all())
                return port
            port = found
