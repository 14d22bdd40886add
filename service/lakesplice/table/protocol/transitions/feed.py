"""The change feed for other Delta readers: how commits begin it, end it and add to it.

From `since` on, each commit that changes rows of base files has files of images, the log's `cdc`
actions. If a commit has such files, a reader takes the commit's changes only from these. Otherwise
it derives them from all rows of the base files that were added and removed. So commits that only
add files need no images, and neither do restores and changes of the schema.
"""

from __future__ import annotations

from dataclasses import replace

from lakesplice.formats.log.actions import (
    CHECK_FEATURE,
    FEED_PROPERTY,
    FEED_PROTOCOL,
    OUR_PROTOCOL,
    Action,
    ChangeData,
    TableMetadata,
    TableProtocol,
)
from lakesplice.model.manifest import ChangeFeed, Manifest
from lakesplice.table.protocol.intents import Ingest, Replay, SetChangeFeed, Splice, Upsert

START_FEED, END_FEED = "START FEED", "END FEED"


def without_images(manifest: Manifest) -> Manifest:
    """Return the manifest without the images of its own commit: the next commit has others."""
    if manifest.feed is None:
        return manifest
    return replace(manifest, feed=ChangeFeed(manifest.feed.since))


def with_images(
    manifest: Manifest, intent: Ingest | Upsert | Splice | Replay
) -> tuple[Manifest, tuple[Action, ...]]:
    """Return the manifest and the log's actions with a commit's images.

    There are none if the table has no change feed, whatever was written, or if the commit replaces
    no file.
    """
    if manifest.feed is None or not intent.replaced:
        return manifest, ()
    written = intent.images or ()
    names = manifest.schema.partitioned_by
    actions = tuple(
        ChangeData(one.file.path, one.file.bytes, dict(zip(names, one.partition, strict=True)))
        for one in written
    )
    feed = ChangeFeed(manifest.feed.since, tuple(one.file for one in written))
    return replace(manifest, feed=feed), actions


def protocol_of(*, change_feed: bool, checks: bool = False) -> TableProtocol:
    """Return the features that readers and writers of a table must know."""
    plain = FEED_PROTOCOL if change_feed else OUR_PROTOCOL
    if not checks:
        return plain
    return replace(plain, writer_features=(*plain.writer_features, CHECK_FEATURE))


def after_setting(
    before: Manifest, intent: SetChangeFeed, version: int, metadata: TableMetadata
) -> tuple[Manifest, tuple[Action, ...]]:
    """Return the manifest and the log's actions after the feed begins or ends with `version`.

    The feature stays in the protocol: versions with images can still be read.
    """
    properties = {**metadata.properties, FEED_PROPERTY: "true" if intent.on else "false"}
    feed = ChangeFeed(version) if intent.on else None
    checks = before.upserts is not None and bool(before.upserts.checks)
    protocol = protocol_of(change_feed=True, checks=checks)
    actions = (protocol, replace(metadata, properties=properties))
    return replace(before, feed=feed), actions
