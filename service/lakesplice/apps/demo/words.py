"""What the demo says at its end, or once everything runs: where things are, and what to try."""

from __future__ import annotations

import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from lakesplice.apps.demo.folders import DemoFolders
from lakesplice.apps.demo.servers import Addresses


def what_is_left(places: DemoFolders) -> str:
    """Return how to explore what the demo left behind."""
    return _EXPLORE.format(
        folder=places.folder,
        lake=places.lake,
        orders=places.lake / "shop" / "orders",
        lakesplice=_command("lakesplice"),
        python=_command("python"),
    )


def what_is_served(addresses: Addresses) -> str:
    """Return the addresses, and the first commands to try, for people."""
    return _WORDS.format(
        **asdict(addresses),
        ids=", ".join(f"{name} {pid}" for name, pid in addresses.processes.items()),
        table=Path(addresses.lake) / "shop" / "orders",
        lakesplice=_command("lakesplice"),
        python=_command("python"),
    )


def _command(name: str) -> str:
    """Return how to call a program of this environment from here: its name if the shell finds it,
    else its path.
    """
    own = Path(sys.executable).parent / name
    found = shutil.which(name)
    # Links aren't resolved: every environment's python is a link to one interpreter.
    if found is not None and Path(found).absolute() == own:
        return name
    return str(own.relative_to(Path.cwd()) if own.is_relative_to(Path.cwd()) else own)


_EXPLORE = """
All of it is in {folder}. To explore:

  {lakesplice} tables {lake}
  {lakesplice} read {orders} --limit 5
  {lakesplice} history {orders}
  {lakesplice} inspect log {orders}
  {lakesplice} inspect manifest {orders}
  {python} -c "import duckdb, deltalake; \
t = deltalake.DeltaTable('{orders}').to_pyarrow_dataset(); \
print(duckdb.sql('select status, count(*) from t where not _is_deleted group by all'))"
"""
_WORDS = """
Everything runs, on this machine only:

  page           {page}
  MariaDB        {database}, user {user}, password {password}
  Kafka          {kafka}
  Kafka Connect  {connect}
  lake           {lake}
  settings       {config}
  processes      {ids}

Each table of each database becomes a table of the lake, also those that you create. To try it, in
another terminal:

  {client} shop -e "insert into orders (customer_id, status, total) values (2, 'new', 5)"
  {lakesplice} tables {lake}
  {python} -c "import duckdb, deltalake; \
t = deltalake.DeltaTable('{table}').to_pyarrow_dataset(); \
print(duckdb.sql('select id, status, total from t where not _is_deleted order by id'))"

Ctrl-C stops all of it. The next start in the same folder begins with empty data.
"""
