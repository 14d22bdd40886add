"""DDL statements of MySQL and MariaDB, as far as they say which columns tables have.

sqlglot divides the text into words. Its grammar isn't used: it lacks RENAME TABLE, brackets after
ADD and types such as POINT, and gives some types other names. If a statement about a table can't be
read, the table's columns are unknown; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from lakesplice.formats.events.ddl.columns import (
    Action,
    ColumnAdded,
    ColumnChanged,
    ColumnGone,
    ColumnRenamed,
    DefinedColumn,
    ForeignKeyCascades,
    RowsMoved,
    Statement,
    TableAltered,
    TableDefined,
    TableGone,
    TableLike,
    TableUnread,
)
from lakesplice.formats.events.ddl.definitions import column_definition
from lakesplice.formats.events.ddl.tokens import Token, Tokens, UnreadableError, statements
from lakesplice.model.names import TableName

_KEYS = frozenset(
    ("PRIMARY", "KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK",
     "PARTITION")
)  # fmt: skip
_PROGRAMS = frozenset(("PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"))
_OBJECTS = frozenset(("TABLE", "VIEW", "INDEX", "DATABASE", "SCHEMA"))
# Words before what is created: CREATE OR REPLACE DEFINER = u @ h AGGREGATE FUNCTION.
_HEAD_MAX = 12
# ALTER TABLEs that remove rows from a table, or add some, without an event.
_MOVING = (
    ("DROP", "PARTITION"), ("TRUNCATE", "PARTITION"), ("EXCHANGE", "PARTITION"),
    ("CONVERT", "PARTITION"), ("CONVERT", "TABLE"),
    ("IMPORT", "TABLESPACE"), ("IMPORT", "PARTITION"),
)  # fmt: skip
# By these InnoDB changes child rows below the binlog.
_CASCADING = tuple(
    ("ON", event, *does)
    for event in ("DELETE", "UPDATE")
    for does in (("CASCADE",), ("SET", "NULL"), ("SET", "DEFAULT"))
)
# Parts of an ALTER TABLE that leave its columns as they are.
_OTHERS = frozenset(
    ("ALGORITHM", "ALTER", "ANALYZE", "AUTO_INCREMENT", "AUTOEXTEND_SIZE", "AVG_ROW_LENGTH",
     "CHARACTER", "CHARSET", "CHECK", "CHECKSUM", "COALESCE", "COLLATE", "COMMENT", "COMPRESSION",
     "CONNECTION", "DATA", "DEFAULT", "DELAY_KEY_WRITE", "DISABLE", "DISCARD", "ENABLE",
     "ENCRYPTED", "ENCRYPTION", "ENCRYPTION_KEY_ID", "ENGINE", "ENGINE_ATTRIBUTE", "EXCHANGE",
     "FORCE", "IETF_QUOTES", "IMPORT", "INDEX", "INSERT_METHOD", "KEY_BLOCK_SIZE", "LOCK",
     "MAX_ROWS", "MIN_ROWS", "NOWAIT", "OPTIMIZE", "ORDER", "PACK_KEYS", "PAGE_CHECKSUM",
     "PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL", "PARTITION", "PASSWORD", "REBUILD", "REMOVE",
     "REORGANIZE", "REPAIR", "ROW_FORMAT", "SECONDARY_ENGINE", "SECONDARY_LOAD",
     "SECONDARY_UNLOAD", "SEQUENCE", "STATS_AUTO_RECALC", "STATS_PERSISTENT",
     "STATS_SAMPLE_PAGES", "STORAGE", "TABLESPACE", "TRANSACTIONAL", "TRUNCATE", "UNION",
     "UPGRADE", "WAIT", "WITH", "WITHOUT")
)  # fmt: skip


def read_statements(sql: str, database: str) -> list[Statement]:
    """Return what the statements say about tables, in order; names without a database are in
    `database`.

    Statements about anything else return nothing. Never raises because of the text.
    """
    try:
        cut = list(statements(sql))
    except UnreadableError as error:
        return [TableUnread(None, str(error))]
    own = takewhile(lambda words: not _is_program(words), cut)
    return [found for words in own for found in _statement(Tokens(words), database)]


def _is_program(words: list[Token]) -> bool:
    """Whether a procedure, function, trigger or event begins; the rest are its own statements."""
    if not words or words[0].key not in ("CREATE", "ALTER"):
        return False
    kinds = (word.key for word in words[:_HEAD_MAX])
    return next((kind for kind in kinds if kind in _PROGRAMS | _OBJECTS), "") in _PROGRAMS


def _statement(words: Tokens, database: str) -> list[Statement]:
    try:
        if words.accept("CREATE"):
            return list(_create(words, database))
        if words.accept("ALTER"):
            words.accept("ONLINE")
            words.accept("IGNORE")
            return _alter(words, database) if words.accept("TABLE") else []
        if words.accept("RENAME"):
            listed = words.accept("TABLE") or words.accept("TABLES")
            return list(_renames(words, database)) if listed else []
        if words.accept("DROP"):
            return list(_drop(words, database))
        if words.accept("SET", "STATEMENT"):
            # MariaDB: settings for one statement.
            while not words.accept("FOR"):
                words.take()
            return _statement(words, database)
    except UnreadableError as error:
        return [TableUnread(None, str(error))]
    return []


def _table(words: Tokens, database: str) -> TableName:
    name = words.name()
    if words.accept("."):
        return TableName(name, words.name())
    return TableName(database, name)


def _create(words: Tokens, database: str) -> Iterator[Statement]:
    replaces = words.accept("OR", "REPLACE")
    if not words.accept("TABLE"):
        return  # a temporary table among others: its rows are in no binlog
    unless_there = words.accept("IF", "NOT", "EXISTS")
    table = _table(words, database)
    if replaces:
        yield TableGone(table.database, table.table)
    cascades = list(_cascades(words, table))
    try:
        yield _created(words, table, database, unless_there=unless_there)
        yield from cascades
    except UnreadableError as error:
        yield TableUnread(table, str(error))


def _cascades(words: Tokens, table: TableName) -> Iterator[Statement]:
    if any(words.has(*clause) for clause in _CASCADING):
        yield ForeignKeyCascades(table)


def _created(words: Tokens, table: TableName, database: str, *, unless_there: bool) -> Statement:
    if words.accept("LIKE"):
        return TableLike(table, _table(words, database), unless_there)
    inside = words.bracketed()
    if inside.accept("LIKE"):
        return TableLike(table, _table(inside, database), unless_there)
    while words:
        word = words.take()
        if word.key in ("SELECT", "AS"):
            raise UnreadableError("its columns are those of a query")
        if word.text.lower() == "binary":
            raise UnreadableError("its text columns have a binary character set by default")
    columns: list[DefinedColumn] = []
    key: tuple[str, ...] = ()
    for part in inside.parts():
        if part.next.key in _KEYS:
            key = _primary(part) or key
            continue
        if part.accept("PERIOD", "FOR"):
            continue
        definition = column_definition(part)
        columns.append(definition.column)
        key = (definition.column.name,) if definition.is_key else key
    return TableDefined(table, tuple(columns), key, unless_there=unless_there)


def _primary(words: Tokens) -> tuple[str, ...]:
    """The columns of a primary key; none if it is another one."""
    if words.accept("CONSTRAINT") and words.next.key != "PRIMARY":
        words.name()
    if not words.accept("PRIMARY", "KEY"):
        return ()
    while words and words.next.key != "(":
        words.take()
    return tuple(part.name() for part in words.bracketed().parts())


def _alter(words: Tokens, database: str) -> list[Statement]:
    words.accept("IF", "EXISTS")
    table = _table(words, database)
    _patience(words)
    actions: list[Action] = []
    to = None
    cascades = list(_cascades(words, table))
    moved = next((RowsMoved(table, " ".join(w)) for w in _MOVING if words.follow(*w)), None)
    if moved is not None:
        return [moved, *_moved_beside(words, database, moved)]
    try:
        is_sorting = False
        for part in words.parts():
            if is_sorting and part.is_sort_key:
                continue
            is_sorting = part.next.key == "ORDER"
            if part.accept("RENAME"):
                name = _renamed(part, database)
                if isinstance(name, TableName):
                    to = name
                elif name is not None:
                    actions.append(name)
            else:
                actions += _actions(part)
    except UnreadableError as error:
        return [TableUnread(table, str(error))]
    return [*cascades, *([TableAltered(table, tuple(actions), to)] if actions or to else [])]


def _moved_beside(words: Tokens, database: str, moved: RowsMoved) -> Iterator[Statement]:
    """Yield what a statement about partitions does to another table."""
    while words:
        if words.accept("EXCHANGE"):
            other = _table_after(words, database, "WITH")
            yield from [RowsMoved(other, moved.what)] if other else []
        elif words.accept("CONVERT", "PARTITION"):
            other = _table_after(words, database, "TO")
            yield from [TableLike(other, moved.table, unless_there=False)] if other else []
            yield from [RowsMoved(other, moved.what)] if other else []
        elif words.accept("CONVERT", "TABLE"):
            other = _table(words, database)
            yield TableGone(other.database, other.table)
        else:
            words.take()


def _table_after(words: Tokens, database: str, preposition: str) -> TableName | None:
    while words:
        if words.accept(preposition, "TABLE"):
            return _table(words, database)
        words.take()
    return None


def _patience(words: Tokens) -> None:
    """How long MariaDB waits for the table."""
    if words.accept("WAIT"):
        words.number()
    words.accept("NOWAIT")


def _renamed(words: Tokens, database: str) -> TableName | ColumnRenamed | None:
    if words.accept("COLUMN"):
        if_there = words.accept("IF", "EXISTS")
        name = words.name()
        words.expect("TO")
        return ColumnRenamed(name, words.name(), if_there)
    if words.next.key in ("INDEX", "KEY"):
        return None
    _ = words.accept("TO") or words.accept("AS") or words.accept("=")
    return _table(words, database)


def _actions(words: Tokens) -> Iterator[Action]:
    if words.accept("ADD"):
        yield from _added(words)
    elif words.accept("DROP"):
        if words.next.key in _KEYS or _is_history(words):
            return
        words.accept("COLUMN")
        if_there = words.accept("IF", "EXISTS")
        yield ColumnGone(words.name(), if_there)
    elif words.accept("MODIFY"):
        words.accept("COLUMN")
        if_there = words.accept("IF", "EXISTS")
        column = column_definition(words).column
        yield ColumnChanged(column.name, column, if_there)
    elif words.accept("CHANGE"):
        words.accept("COLUMN")
        if_there = words.accept("IF", "EXISTS")
        name = words.name()
        yield ColumnChanged(name, column_definition(words).column, if_there)
    elif words.accept("CONVERT"):
        words.expect("TO")
        while words:
            if words.take().text.lower() == "binary":
                raise UnreadableError("texts become bytes")
    elif words and words.next.key not in _OTHERS:
        raise UnreadableError(f"{words.next.text!r} isn't a known part of ALTER TABLE")


def _is_history(words: Tokens) -> bool:
    """The words by which MariaDB keeps a table's past; columns may have such names, too."""
    return words.accept("SYSTEM", "VERSIONING") or words.accept("PERIOD", "FOR")


def _added(words: Tokens) -> Iterator[Action]:
    if words.next.key in _KEYS or _is_history(words):
        return
    words.accept("COLUMN")
    unless_there = words.accept("IF", "NOT", "EXISTS")
    if words.next.key != "(":
        yield ColumnAdded(column_definition(words).column, unless_there)
        return
    for part in words.bracketed().parts():
        if part.next.key not in _KEYS:
            yield ColumnAdded(column_definition(part).column, unless_there)


def _renames(words: Tokens, database: str) -> Iterator[Statement]:
    """The renames of one statement are applied from left to right."""
    words.accept("IF", "EXISTS")
    for part in words.parts():
        table = _table(part, database)
        _patience(part)
        part.expect("TO")
        yield TableAltered(table, (), _table(part, database))


def _drop(words: Tokens, database: str) -> Iterator[Statement]:
    if words.accept("DATABASE") or words.accept("SCHEMA"):
        words.accept("IF", "EXISTS")
        yield TableGone(words.name(), None)
    elif words.accept("TABLE") or words.accept("TABLES"):
        words.accept("IF", "EXISTS")
        for part in words.parts():
            gone = _table(part, database)
            yield TableGone(gone.database, gone.table)
