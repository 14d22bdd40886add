"""The table of preconditions, cell by cell: what each refuses, and the harm without it.

Each cell is run twice: unchanged, where the late commit is refused and the table is unchanged; and
without that precondition, where the commit succeeds and does the named harm.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.errors import FencedError
from lakesplice.model.manifest import UpsertState
from lakesplice.table.protocol import commit as commits
from lakesplice.table.protocol.commit import Committed, Conflict, ConflictCode
from lakesplice.table.protocol.intents import (
    Backfill,
    ChangePins,
    Cluster,
    Create,
    EndVersions,
    Erase,
    Evolve,
    Expire,
    FileMerge,
    IndexMerge,
    Ingest,
    Intent,
    Note,
    Purge,
    Redirect,
    ReplaceTable,
    Replay,
    Restore,
    SetChangeFeed,
    SetConstraints,
    Splice,
    Swap,
    Sweep,
    Upsert,
)
from tests.support.tables import SCHEMA, TableUnderTest, local_table
from tests.unit.table.preconditions import (
    clusterings,
    erasures,
    ingests,
    redirects,
    retention,
    rewrites,
    shadows,
    upserts,
)
from tests.unit.table.preconditions.cell import SCORE, Cell

CELLS = {
    **ingests.CELLS,
    **redirects.CELLS,
    **rewrites.CELLS,
    **upserts.CELLS,
    **retention.CELLS,
    **shadows.CELLS,
    **erasures.CELLS,
    **clusterings.CELLS,
}
# Without these the transition of a late commit breaks off.
BREAKING = {
    **ingests.BREAKING,
    **rewrites.BREAKING,
    **upserts.BREAKING,
    **shadows.BREAKING,
    **erasures.BREAKING,
    **clusterings.BREAKING,
}


@pytest.fixture
def table(tmp_path: Path, request: pytest.FixtureRequest) -> TableUnderTest:
    table = local_table(tmp_path)
    name = getattr(request.node, "callspec", None)
    if name is not None and str(name.params["name"]).startswith(
        ("upsert", "constraints", "replace")
    ):
        rows = {"files": (table.file(1),), "runs": (table.run(),)}
        table.create(source=None, upserts=UpsertState(0), **rows)
        return table
    is_shadow = name is not None and str(name.params["name"]).startswith("backfill")
    table.create(backfill=shadows.CHUNKS if is_shadow else None)
    table.committed(table.ingest(0, files=(table.file(1),), runs=(table.run(), table.run())))
    return table


@pytest.mark.parametrize("name", [*CELLS, *BREAKING])
def test_a_late_commit_is_refused_and_changes_nothing(table: TableUnderTest, name: str) -> None:
    cell = (CELLS | BREAKING)[name]
    intent = cell.late(table)
    before = table.now()
    if cell.reason is None:
        with pytest.raises(FencedError):
            table.commit(intent)
    else:
        outcome = table.commit(intent)
        assert isinstance(outcome, Conflict)
        assert outcome.reason is cell.reason
    assert table.now() == before


@pytest.mark.parametrize("name", CELLS)
def test_without_its_precondition_a_late_commit_does_harm(
    table: TableUnderTest, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = CELLS[name]
    intent = cell.late(table)
    before = table.now()
    _drop(monkeypatch, intent, cell)
    outcome = table.commit(intent)
    assert isinstance(outcome, Committed)
    assert cell.harm(before, table.now())


@pytest.mark.parametrize("name", BREAKING)
def test_without_its_precondition_a_late_commit_breaks_off(
    table: TableUnderTest, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = BREAKING[name]
    intent = cell.late(table)
    _drop(monkeypatch, intent, cell)
    with pytest.raises((KeyError, ValueError)):
        table.commit(intent)


def test_a_schema_that_another_commit_made_is_not_made_again(table: TableUnderTest) -> None:
    grown = SCHEMA.with_columns([SCORE], ("id",))
    table.committed(Evolve.of(1, table.now().manifest, grown))
    outcome = table.commit(Evolve.of(1, table.now().manifest, grown))
    assert isinstance(outcome, Conflict)
    assert outcome.reason is ConflictCode.SCHEMA


def test_every_precondition_of_every_intent_has_its_cell(table: TableUnderTest) -> None:
    prefixes = {
        "ingest": Ingest,
        "upsert": Upsert,
        "splice": Splice,
        "merge": IndexMerge,
        "evolve": Evolve,
        "redirect": Redirect,
        "feed": SetChangeFeed,
        "constraints": SetConstraints,
        "replay": Replay,
        "expire": Expire,
        "pin": ChangePins,
        "note": Note,
        "sweep": Sweep,
        "restore": Restore,
        "replace": ReplaceTable,
        "filemerge": FileMerge,
        "purge": Purge,
        "cluster": Cluster,
        "backfill": Backfill,
        "swap": Swap,
        "erase": Erase,
        "end": EndVersions,
    }
    cells = CELLS | BREAKING
    tested = {(prefixes[name.partition(":")[0]], cell.precondition) for name, cell in cells.items()}
    stated = {
        (kind, precondition)
        for kind, preconditions in commits.PRECONDITIONS.items()
        for precondition in preconditions
    }
    assert tested == stated
    assert Create not in commits.PRECONDITIONS


def _drop(monkeypatch: pytest.MonkeyPatch, intent: Intent, cell: Cell) -> None:
    kind = type(intent)
    kept = tuple(p for p in commits.PRECONDITIONS[kind] if p is not cell.precondition)
    assert len(kept) == len(commits.PRECONDITIONS[kind]) - 1
    monkeypatch.setattr(commits, "PRECONDITIONS", {**commits.PRECONDITIONS, kind: kept})
