"""Erasures of a simulated driver's table, and what a search of all bytes finds of its keys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lakesplice.apps.erasing.byte_search import files_in, search
from lakesplice.apps.erasing.searched_table import values_of_keys
from lakesplice.model.manifest import Manifest
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.erased_keys import SaltedHash
from lakesplice.planning.keys.requested_key import KeyValues
from lakesplice.planning.rows.keyhash import salted_hash
from lakesplice.storage.stores import log_keeper, open_sink
from lakesplice.table.files.erased_keys import read_erased
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.protocol.ports import Store
from lakesplice.table.upkeep.erasing.erasure import Erased, ErasureTools, erase
from lakesplice.table.upkeep.erasing.found_parts import WantedKeys
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.simulation import SimulatedDriver


def wanted(manifest: Manifest, keys: Sequence[KeyValues]) -> WantedKeys:
    """Keys of a table."""
    return WantedKeys.requested(manifest.schema, keys)


def erase_keys(
    driver: SimulatedDriver,
    keys: Sequence[KeyValues],
    *,
    bare: Store | None = None,
    seed: int = 1,
    also_live: bool = False,
) -> Erased:
    """Erase rows as the driver; `bare` is the table's store without faults, for its checkpoint."""
    table = driver.table
    assert table.snapshot is not None
    tools = ErasureTools(
        store=table.store,
        commit=table.commit,
        generation=table.generation,
        clock=FixedClock(),
        entropy=SeededEntropy(1_000_000 + seed),
        rewriter=best_rewriter(open_sink),
        keeper=log_keeper(bare or table.store),
        retries=table.retries,
    )
    return erase(tools, table.snapshot, wanted(table.manifest, keys), also_live=also_live)


def found(
    root: Path, manifest: Manifest, keys: Sequence[KeyValues], *values: str
) -> dict[str, int]:
    """How many of the keys, their hashes and the values each file of a lake has."""
    looked_for = [*values_of_keys(manifest.schema, wanted(manifest, keys)), *values]
    return {path: len(has) for path, has in search(files_in(root), looked_for).items()}


def erased_positions_of(
    store: Store, manifest: Manifest, keys: Sequence[KeyValues]
) -> dict[KeyValues, Position]:
    """Up to which positions changes of keys have no effect, since their rows were erased."""
    if manifest.erased is None or not manifest.schema.key:
        return {}
    known = read_erased(store, manifest.erased)
    found = {}
    for key in keys:
        salted = salted_hash(wanted(manifest, [key]).hashes, known.salt)
        found[key] = known.positions.get(SaltedHash(*salted.at(0)), BEFORE_ALL)
    return found
