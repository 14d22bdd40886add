"""Who wrote a file: the name that readers go by, and under a key those who wrote its pages before.

Readers work round the faults of writers by name, so a file says who wrote it last. What they wrote
before us is kept, one name a line, since it says what can be believed of copied pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lakesplice.splicing.metadata.writer_options import ORIGINAL_CREATED_BY
from lakesplice.splicing.structures.footer import Footer

# The version is the package's; importing it from there would import the house from its roof.
CREATED_BY = "lakesplice version 0.1.0"
_OURS = "lakesplice version "
_NOBODY = b"unknown"


def spliced_by_us(footer: Footer) -> bool:
    """Return whether we signed the file, in whatever version."""
    return (footer.created_by or "").startswith(_OURS)


def writers(footer: Footer) -> tuple[bytes, ...]:
    """Return who wrote the file's pages before it was spliced, oldest first, one at least."""
    kept = next((v for k, v in footer.key_values or () if k == ORIGINAL_CREATED_BY), None)
    found = kept.split(b"\n") if kept else []
    if not spliced_by_us(footer):
        found.append((footer.created_by or "").encode(errors="surrogateescape") or _NOBODY)
    return tuple(dict.fromkeys(found)) or (_NOBODY,)


def signed(footer: Footer) -> Footer:
    """Return the footer of a spliced file in our name."""
    return footer if footer.created_by == CREATED_BY else signed_for(footer, writers(footer))


def signed_for(footer: Footer, names: Iterable[bytes]) -> Footer:
    """Return the footer in our name, its pages being by `names`."""
    before = b"\n".join(dict.fromkeys(names))
    pairs = [pair for pair in footer.key_values or () if pair[0] != ORIGINAL_CREATED_BY]
    if before != _NOBODY:
        pairs.append((ORIGINAL_CREATED_BY, before))
    return replace(footer, created_by=CREATED_BY, key_values=tuple(pairs) or None)
