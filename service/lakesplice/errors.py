"""Every error Lakesplice raises, grouped by what the reader of the message must do.

    LakespliceError
    +-- RetryableError            try again; nothing was changed
    |   +-- StorageError          the store failed; the effect is unknown or absent
    |   +-- SourceUnavailable     Kafka or the schema registry could not be reached
    |       +-- CredentialsRefused  correct kafka.options, or the user at the broker
    +-- FencedError               stop: another driver owns the lake
    +-- CorruptFileError          restore or rebuild the named file; it is never read on
    |   +-- MissingFileError      a file that a retained version names does not exist
    |   +-- ForeignCommitError    undo what another program committed: `lakesplice restore`
    +-- MissingOffsetsError       the broker lost records; reload the table, or change the setting
    +-- UnsupportedError          this version cannot do it; the message names a workaround
    +-- TableError                about one table; the others continue
    |   +-- TableNotFoundError
    |   +-- VersionNotFoundError  the version was never written, or is past retention
    |   +-- ParkedTableError
    +-- ConfigurationError        fix the configuration
    +-- UsageError                fix the command or the call

Expected outcomes are values, not errors: a lost commit race is a `Conflict`, a record that cannot
be decoded is a dead letter, a table that cannot continue is parked with a `ParkReason`.

Facts are attributes as well as `key=value` pairs in the message, so that logs can be searched.
"""

from __future__ import annotations


class LakespliceError(Exception):
    """Root of the tree: `message` followed by its facts as `key=value`."""

    def __init__(self, message: str, **facts: object) -> None:
        self.message = message
        self.facts = facts
        details = " ".join(f"{name}={value!r}" for name, value in facts.items())
        super().__init__(f"{message} [{details}]" if details else message)

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the facts when an error crosses a process boundary (Spark workers pickle it)."""
        return (_rebuild, (type(self), self.message, self.facts))


def _rebuild(
    kind: type[LakespliceError], message: str, facts: dict[str, object]
) -> LakespliceError:
    return kind(message, **facts)


def class_in_tree(error: BaseException) -> type[LakespliceError] | None:
    """Return the class above that an error is of, or its nearest parent among them; None if the
    error is no `LakespliceError`.

    Every process knows these classes, so this one can be sent where a subclass's module isn't.
    """
    ancestors = type(error).__mro__
    found = (kind for kind in ancestors if kind.__module__ == __name__)
    kind = next(found, None)
    return kind if kind is not None and issubclass(kind, LakespliceError) else None


class RetryableError(LakespliceError):
    """Nothing was changed, or nothing that can be seen; the same call may succeed later."""


class StorageError(RetryableError):
    """The store failed; whether a write took effect is unknown until it is looked up."""


class SourceUnavailable(RetryableError):
    """Kafka or the schema registry did not answer within its time, or refuses."""


class CredentialsRefused(SourceUnavailable):
    """Kafka doesn't believe who we are, or we don't believe who it is."""


class FencedError(LakespliceError):
    """A newer driver generation exists: this process must stop and change nothing more."""


class CorruptFileError(LakespliceError):
    """A file's bytes are not what was written: its size, checksum or structure is wrong."""


class MissingFileError(CorruptFileError):
    """A file that a retained version names does not exist."""


class ForeignCommitError(CorruptFileError):
    """Another program committed to the table, so nothing can until that is undone."""


class MissingOffsetsError(LakespliceError):
    """The broker lost records that a table hasn't read, and the settings say to stop for that."""


class UnsupportedError(LakespliceError):
    """The input is legal but beyond this version; the message names a workaround."""


class TableError(LakespliceError):
    """Concerns one table; the other tables are unharmed."""


class TableNotFoundError(TableError):
    """There is no Lakesplice table at the path."""


class VersionNotFoundError(TableError):
    """The version was never written, or its log entries are past their retention."""


class ParkedTableError(TableError):
    """The table is parked and the command needs a running table, or it is running and must be
    parked.
    """


class ConfigurationError(LakespliceError):
    """The configuration cannot be used as it is."""


class UsageError(LakespliceError):
    """The command or the call cannot be carried out as it was given."""
