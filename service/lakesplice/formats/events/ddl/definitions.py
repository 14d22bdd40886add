"""A column's definition, as CREATE TABLE and ALTER TABLE have it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lakesplice.formats.events.ddl.columns import DefinedColumn
from lakesplice.formats.events.ddl.tokens import TokenKind, Tokens, UnreadableError

# MySQL's other words for a type.
_SYNONYMS = {
    "INTEGER": "INT", "INT1": "TINYINT", "INT2": "SMALLINT", "INT3": "MEDIUMINT", "INT4": "INT",
    "INT8": "BIGINT", "MIDDLEINT": "MEDIUMINT", "DEC": "DECIMAL", "NUMERIC": "DECIMAL",
    "FIXED": "DECIMAL", "FLOAT4": "FLOAT", "FLOAT8": "DOUBLE", "REAL": "DOUBLE",
    "DOUBLE PRECISION": "DOUBLE", "BOOL": "BOOLEAN", "CHARACTER": "CHAR", "NCHAR": "CHAR",
    "NATIONAL CHAR": "CHAR", "NATIONAL CHARACTER": "CHAR", "CHAR VARYING": "VARCHAR",
    "CHARACTER VARYING": "VARCHAR", "VARCHARACTER": "VARCHAR", "NVARCHAR": "VARCHAR",
    "NCHAR VARCHAR": "VARCHAR", "NATIONAL VARCHARACTER": "VARCHAR", "NCHAR VARCHARACTER": "VARCHAR",
    "NATIONAL VARCHAR": "VARCHAR", "NATIONAL CHAR VARYING": "VARCHAR",
    "NATIONAL CHARACTER VARYING": "VARCHAR", "NCHAR VARYING": "VARCHAR", "LONG": "MEDIUMTEXT",
    "LONG VARCHAR": "MEDIUMTEXT", "LONG VARBINARY": "MEDIUMBLOB",
}  # fmt: skip
_SECOND = frozenset(
    ("PRECISION", "VARYING", "CHAR", "CHARACTER", "VARCHAR", "VARCHARACTER", "VARBINARY")
)  # of a type's name
_TRUTHS = {"TRUE": "1", "FALSE": "0"}
_UNSIGNED = frozenset(("UNSIGNED", "ZEROFILL"))  # the latter implies the former
_WITH_MEMBERS = frozenset(("ENUM", "SET"))
_NUMBERS = frozenset(
    ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
)


@dataclass(frozen=True, slots=True)
class Definition:
    """A column, and whether it is the table's key by itself."""

    column: DefinedColumn
    is_key: bool = False


def type_name(text: str) -> str:
    """Return MySQL's name of a type, its synonyms resolved, with `UNSIGNED` at the end if it is."""
    words = text.upper().split()
    unsigned = any(word in _UNSIGNED for word in words)
    plain = " ".join(word for word in words if word not in (*_UNSIGNED, "SIGNED", "BINARY", "BYTE"))
    if not plain and words:
        plain = words[0]  # the type BINARY itself
    plain = _SYNONYMS.get(plain, plain)
    return f"{plain} UNSIGNED" if unsigned and plain in _NUMBERS else plain


def column_definition(words: Tokens) -> Definition:
    """Read `name type attributes` up to the end of the words; `UnreadableError` if they aren't a
    definition.
    """
    name = words.name()
    while words.accept("."):  # the table's name may be before it
        name = words.name()
    column, rest = _typed(name, words)
    return _attributes(column, rest)


def _typed(name: str, words: Tokens) -> tuple[DefinedColumn, Tokens]:
    first = words.take()
    if first.kind is not TokenKind.WORD:
        raise UnreadableError(f"{first.text!r} where the type of {name!r} was expected")
    said = [first.key]
    while words.next.key in _SECOND and not (
        # CHAR CHARACTER SET x: the second isn't part of the type.
        words.next.key in ("CHARACTER", "CHAR") and said[-1] not in ("NATIONAL", "LONG")
    ):
        said.append(words.take().key)
    if said == ["SERIAL"]:
        column = DefinedColumn(name, "BIGINT UNSIGNED", optional=False)
        return column, words
    type_ = type_name(" ".join(said))
    column = DefinedColumn(name, type_)
    if words.next.key != "(":
        return column, words
    inside = words.bracketed()
    if type_ in _WITH_MEMBERS:
        members = tuple(part.take().text for part in inside.parts())
        return replace(column, members=members), words
    numbers = [part.number() for part in inside.parts()] if inside else []
    if len(numbers) > 2:
        raise UnreadableError(f"{len(numbers)} numbers after the type of {name!r}")
    length, scale = (*numbers, None, None)[:2]
    if type_ == "BIT" and length == 0:
        length = None  # the server takes its own length for none
    return replace(column, length=length, scale=scale), words


def _attributes(column: DefinedColumn, words: Tokens) -> Definition:
    is_key = False
    while words:
        if words.accept("NOT", "NULL"):
            column = replace(column, optional=False)
        elif words.accept("DEFAULT"):
            column = _with_default(column, words)
        elif words.accept("CHARACTER", "SET") or words.accept("CHARSET"):
            column = replace(column, charset=words.take().text.lower())
        elif words.accept("COLLATE"):
            column = _collated(column, words.take().text)
        elif words.accept("UNIQUE"):
            words.accept("KEY")
        elif words.accept("PRIMARY", "KEY") or words.accept("KEY"):
            is_key = True
            column = replace(column, optional=False)
        elif words.accept("BYTE"):
            column = replace(column, charset="binary")
        elif words.next.key in _UNSIGNED:
            column = replace(column, type=type_name(f"{column.type} {words.take().key}"))
        elif words.accept("AUTO_INCREMENT") or words.accept("AS"):
            column = replace(column, default_known=False)
        elif words.accept("REFERENCES"):
            break  # nothing of the column itself follows
        else:
            words.take()
            words.skip_bracketed()
    return Definition(column, is_key)


def _collated(column: DefinedColumn, collation: str) -> DefinedColumn:
    if collation.lower() == "binary" and column.charset is None:
        return replace(column, charset="binary")
    return column


def _with_default(column: DefinedColumn, words: Tokens) -> DefinedColumn:
    """Read the text of a constant; a computed default is skipped."""
    minus = "-" if words.accept("-") else ""
    if words.accept("NULL"):
        return replace(column, default=None)
    if words.next.key == "(":
        words.bracketed()
        return replace(column, default_known=False)
    point = "0." if words.accept(".") else ""
    word = words.take()
    words.skip_bracketed()
    if word.kind is TokenKind.NUMBER:
        return replace(column, default=minus + point + word.text)
    if word.kind is TokenKind.TEXT and not minus:
        return replace(column, default=word.text)
    truth = _TRUTHS.get(word.key)
    return replace(column, default=truth, default_known=truth is not None)
