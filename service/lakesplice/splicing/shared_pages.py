"""Counts the pages that two Parquet files share: the same bytes, at any offset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

from lakesplice.splicing.structures.page_headers import Page
from lakesplice.splicing.structures.source import SourceFile

# A page may have two gigabytes, so it is hashed in parts of this size.
_PART_BYTES = 8 * 1024 * 1024
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class SharedPages:
    """The number of pages of a file, and how many of them another file has too."""

    pages: int = 0
    pages_shared: int = 0
    bytes: int = 0
    bytes_shared: int = 0

    def __add__(self, other: SharedPages) -> SharedPages:
        return SharedPages(
            self.pages + other.pages,
            self.pages_shared + other.pages_shared,
            self.bytes + other.bytes,
            self.bytes_shared + other.bytes_shared,
        )


def shared_pages(before: SourceFile, after: SourceFile) -> dict[str, SharedPages]:
    """Return for each column of `after` how many of its pages the column of that name in `before`
    has.

    A page that `before` has once counts once. Blocks; reads every page of both. Raises
    `CorruptFileError`.
    """
    columns = {leaf.name: leaf.column for leaf in before.footer.leaves}
    found = {}
    for leaf in after.footer.leaves:
        column = columns.get(leaf.name)
        old = () if column is None else _digests(before, column)
        held = Counter(digest for digest, _ in old)
        total = SharedPages()
        for digest, size in _digests(after, leaf.column):
            same = held[digest] > 0
            held[digest] -= same
            total += SharedPages(1, int(same), size, size * same)
        found[leaf.name] = total
    return found


def page_digest(source: SourceFile, page: Page) -> bytes:
    """Return a digest of a page's header and bytes; it doesn't depend on the page's offset."""
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for at in range(page.offset, page.end, _PART_BYTES):
        digest.update(source.read(at, min(_PART_BYTES, page.end - at)))
    return digest.digest()


def _digests(source: SourceFile, column: int) -> Iterator[tuple[bytes, int]]:
    for group in range(len(source.footer.row_groups)):
        for page in source.pages(group, column):
            yield page_digest(source, page), page.end - page.offset
