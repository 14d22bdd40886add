"""The reasons for which queries are restarted from the offsets in the manifests."""

from __future__ import annotations

from enum import StrEnum


class RestartReason(StrEnum):
    """The names of the reasons in metrics and logs."""

    NEW_TOPICS = "new-topics"
    LANES = "lanes"
    REDIRECT = "redirect"
    REFUSED_COMMIT = "refused-commit"
    RESTED = "rested"
    REQUEST = "request"
    ERROR = "error"


class Restart:
    """Whether a lane's query has to end, and why. Safe from several threads; only the thread that
    runs the lane's batches may call `clear`.
    """

    def __init__(self) -> None:
        self.reason: RestartReason | None = None

    def ask(self, reason: RestartReason) -> None:
        """Ask for the end of the query. That a table can't be read further replaces an earlier
        reason.
        """
        if self.reason is None or reason is RestartReason.REDIRECT:
            self.reason = reason

    def clear(self) -> None:
        """A query starts, which reads every table from its offsets."""
        self.reason = None
