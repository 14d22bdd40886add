"""The names of a file's writers: the last one, which readers see, and under a key the earlier ones.

Readers work around the faults of writers by name. The earlier writers' names are kept, one per
line, since they decide how far the metadata of copied pages can be trusted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lakesplice.splicing.metadata.writer_options import ORIGINAL_CREATED_BY
from lakesplice.splicing.structures.footer import Footer

# The package's version, written out: importing it from the package would break the import rules.
CREATED_BY = "lakesplice version 0.1.0"
_OURS = "lakesplice version "
_NOBODY = b"unknown"


def spliced_by_us(footer: Footer) -> bool:
    """Return whether any version of Lakesplice wrote the file."""
    return (footer.created_by or "").startswith(_OURS)


def writers(footer: Footer) -> tuple[bytes, ...]:
    """Return who wrote the file's pages before it was spliced, oldest first; at least one name."""
    kept = next((v for k, v in footer.key_values or () if k == ORIGINAL_CREATED_BY), None)
    found = kept.split(b"\n") if kept else []
    if not spliced_by_us(footer):
        found.append((footer.created_by or "").encode(errors="surrogateescape") or _NOBODY)
    return tuple(dict.fromkeys(found)) or (_NOBODY,)


def with_our_name(footer: Footer) -> Footer:
    """Return the footer of a spliced file with our name as its writer."""
    return (
        footer if footer.created_by == CREATED_BY else with_our_name_over(footer, writers(footer))
    )


def with_our_name_over(footer: Footer, names: Iterable[bytes]) -> Footer:
    """Return the footer with our name as its writer; `names` wrote its pages."""
    before = b"\n".join(dict.fromkeys(names))
    pairs = [pair for pair in footer.key_values or () if pair[0] != ORIGINAL_CREATED_BY]
    if before != _NOBODY:
        pairs.append((ORIGINAL_CREATED_BY, before))
    return replace(footer, created_by=CREATED_BY, key_values=tuple(pairs) or None)
