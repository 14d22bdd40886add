"""How an erasure changes the manifest and the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lakesplice.model.manifest import Manifest
from lakesplice.model.progress.source_state import SourceState
from lakesplice.table.protocol.intents import EndVersions, Erase
from lakesplice.table.protocol.new_files import adds_of, removes_of
from lakesplice.table.protocol.transitions.parts import CommitPoint, Transition, stamped_runs

ERASE = "ERASE"
ERASED = "ERASED"


def after_erasure(before: Manifest, intent: Erase, moment: CommitPoint) -> Transition:
    """Return the table without the rows. Readers of the log see rewritten files, and no change."""
    files = {path: file for path, file in before.files.items() if path not in intent.inputs}
    files |= {new.base.path: new.base for new in intent.outputs}
    rewritten = intent.rewritten
    runs = [rewritten.runs.get(run.file.path, run) for run in before.runs]
    more = stamped_runs(() if intent.run is None else (intent.run,), moment.version)
    deltas = [rewritten.deltas.get(delta.file.path, delta) for delta in before.deltas]
    letters = [rewritten.letters.get(one.file.path, one) for one in before.dead_letters]
    manifest = replace(
        before,
        files=files,
        runs=(*(run for run in runs if run is not None), *more),
        deltas=tuple(delta for delta in deltas if delta is not None),
        dead_letters=tuple(one for one in letters if one is not None),
        sources=_forgetful(before.sources, intent, moment.version),
        erased=intent.erased,
    )
    removes = removes_of(before, intent.inputs, moment.timestamp_ms, data_change=False)
    adds = adds_of(before.schema, intent.outputs, moment.timestamp_ms, data_change=False)
    return Transition(manifest, ERASE, removes + adds, intent.counts)


def after_end(before: Manifest, intent: EndVersions, moment: CommitPoint) -> Transition:
    """Return the table unchanged, but without older versions."""
    version = moment.version
    kept = replace(
        intent.read,
        retained_from=version,
        vacuumed=intent.vacuumed,
        restores=(),
        writers_from=version,
        swept=version,
        swept_ms=moment.timestamp_ms,
    )
    return Transition(replace(before, retention=kept), ERASED, counts=intent.counts)


def _forgetful(
    sources: Mapping[str, SourceState], intent: Erase, version: int
) -> dict[str, SourceState]:
    """The sources without the highest changes of partitions that belong to these keys. If the table
    has several sources, each counts as having the newest keys, since addresses changed.
    """
    found = {}
    for topic, source in sources.items():
        partitions = {
            number: replace(state, highest=None)
            if state.highest is not None and state.highest.key in intent.keys
            else state
            for number, state in source.partitions.items()
        }
        keys = version if len(sources) > 1 else source.keys_version
        found[topic] = replace(source, partitions=partitions, keys_version=keys)
    return found
