"""`demo --serve`: everything between a database and its tables, kept running until Ctrl-C."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Final

from rich.console import Console

from lakesplice.apps.demo.claims import claimed_folder
from lakesplice.apps.demo.folders import DemoFolders
from lakesplice.apps.demo.servers import Addresses, DemoServers
from lakesplice.apps.demo.stopping import Stopper, StopRequested
from lakesplice.apps.demo.words import what_is_served

KILLED: Final = 130
_LOOK_SECONDS: Final = 1.0


def serve(folder: Path, *, as_json: bool = False) -> int:
    """Start a database, a broker, a connector and the service in `folder`, say where each is, and
    keep them running until SIGINT, SIGTERM or SIGHUP; then stop all of them. Returns 0.

    An earlier demo in the folder is replaced; any other folder with something in it is refused, and
    so is one in which another demo runs.
    With `as_json` the addresses are one JSON object on the standard output, and all words go to the
    standard error. A server that ends by itself is reported, and the others keep running. Must be
    called in the main thread.
    """
    places = DemoFolders(folder.absolute())
    with claimed_folder(places.folder):
        return _Serving(places, as_json=as_json).run()


class _Serving:
    def __init__(self, places: DemoFolders, *, as_json: bool) -> None:
        self._as_json = as_json
        self._console = Console(highlight=False, stderr=as_json)
        self._stopper = Stopper(self._say, self._abandon)
        self._servers = DemoServers(places, self._next, self._stopper.check)
        self._step = 0

    def run(self) -> int:
        with self._stopper.listening():
            try:
                addresses = self._servers.start()
                self._print_addresses(addresses)
                self._keep_running()
            except StopRequested:
                pass
            finally:
                self._servers.stop()
        self._say("stopped; nothing is left running")
        return 0

    def _keep_running(self) -> None:
        ended = set[str]()
        while True:
            self._stopper.wait(_LOOK_SECONDS)
            for server in self._servers.running:
                if not server.is_running and server.name not in ended:
                    ended.add(server.name)
                    self._say(f"{server.name} has ended; its log is {server.log_path}")

    def _print_addresses(self, addresses: Addresses) -> None:
        if self._as_json:
            print(json.dumps(asdict(addresses)), flush=True)
        self._console.print(what_is_served(addresses), markup=False, soft_wrap=True)

    def _next(self, what: str) -> None:
        self._step += 1
        self._console.print(f"[bold]{self._step}. {what}[/]", soft_wrap=True)

    def _say(self, what: str) -> None:
        self._console.print(f"   {what}", markup=False, soft_wrap=True)

    def _abandon(self) -> None:
        """End at once without leaving a server behind: the user didn't wait for a clean stop."""
        self._servers.kill()
        os._exit(KILLED)
