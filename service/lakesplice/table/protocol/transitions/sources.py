"""How commits change the sources in a manifest.

If a table has several sources, a commit's content is stamped with its topic, and a topic is parked
alone.
"""

from __future__ import annotations

from dataclasses import replace

from lakesplice.model.manifest import Manifest
from lakesplice.model.progress.source_state import SourceState
from lakesplice.table.protocol.intents import Ingest, Purge, Redirect, Replay


def fed(before: Manifest, intent: Ingest, version: int) -> Manifest:
    """Return the manifest with the source's state after an ingest, parked if the ingest parks.

    What other commits wrote about the source is kept: a purge may have been committed since the
    ingest was planned.
    """
    known = before.sources.get(intent.source_to.topic, intent.source_to)
    source = replace(intent.source_to, purge_floor=known.purge_floor)
    if not before.is_merged:
        return replace(before.with_source(source), parked=intent.parked)
    keys = version if intent.runs else known.keys_version
    return before.with_source(replace(source, parked=intent.parked, keys_version=keys))


def replayed(before: Manifest, intent: Replay, version: int) -> tuple[Manifest, SourceState | None]:
    """Return the manifest with the source whose dead letters were replayed, and that source."""
    source = intent.source or before.sources.get(intent.topic)
    if source is None:
        return before, None
    if before.is_merged and intent.runs:
        source = replace(source, keys_version=version)
    return before.with_source(source), source


def redirected(before: Manifest, intent: Redirect, version: int) -> Manifest:
    """Return the manifest with the source's new state, parked as the intent says.

    A source of another topic replaces the only source, unless its rows are a shard. A new index
    counts as having the newest keys, so that writers that located in an older one are refused.
    """
    source = intent.source
    if source is not None:
        others = before.sources if source.shard else {}
        before = replace(before, sources=others).with_source(source)
    if intent.runs is not None and before.is_merged:
        known = before.sources.items()
        located = {topic: replace(one, keys_version=version) for topic, one in known}
        before = replace(before, sources=located)
    return replace(before, parked=intent.parked)


def purged(before: Manifest, intent: Purge) -> Manifest:
    """Return the manifest with the purge floors raised."""
    for topic, floor in intent.floors.items():
        source = before.sources[topic]
        before = before.with_source(replace(source, purge_floor=max(source.purge_floor, floor)))
    return before


def stamp(after: Manifest, topic: str) -> str:
    """Return the topic to stamp a commit's content with."""
    return topic if after.is_merged else ""
