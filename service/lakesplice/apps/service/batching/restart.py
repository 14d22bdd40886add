"""The reasons for which queries are restarted, from the offsets in the manifests."""

from __future__ import annotations

from enum import StrEnum


class RestartReason(StrEnum):
    """As metrics and logs call them."""

    NEW_TOPICS = "new-topics"
    LANES = "lanes"
    REDIRECT = "redirect"
    REFUSED_COMMIT = "refused-commit"
    RESTED = "rested"
    REQUEST = "request"
    ERROR = "error"


class Restart:
    """Whether a lane's query has to end, and why. Safe from several threads; only who runs the
    lane's batches may `clear` it.
    """

    def __init__(self) -> None:
        self.reason: RestartReason | None = None

    def ask(self, reason: RestartReason) -> None:
        """Have the query end. A table that can't be read on outweighs what was asked for before."""
        if self.reason is None or reason is RestartReason.REDIRECT:
            self.reason = reason

    def clear(self) -> None:
        """A query starts: it reads every table from where that stands."""
        self.reason = None
