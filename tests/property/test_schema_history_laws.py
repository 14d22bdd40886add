"""Whatever is done to a table's columns, its history shows which columns exist, since when, and
which had another name. It accepts any text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from lakesplice.formats.events.ddl import SchemaChange, SchemaHistory, read_schema_change
from lakesplice.formats.events.ddl.statements import read_statements
from lakesplice.model.names import TableName
from lakesplice.model.position import Position
from tests.support.schema_changes import column, connect_record

_X = TableName("shop", "x")
_TYPES = ("INT", "BIGINT UNSIGNED", "DECIMAL(9,2)", "DECIMAL(12,4)", "VARCHAR(20)", "DATETIME(6)")
_NAMES = ("a", "b", "c", "d", "e")
_Step = tuple[str, str, str, str]
steps = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(("add", "drop", "modify", "change", "rename")),
            st.sampled_from(_NAMES),
            st.sampled_from(_NAMES),
            st.sampled_from(_TYPES),
        ),
        min_size=1,
        max_size=4,
    ),
    max_size=8,
)


@dataclass
class _Model:
    """A table of the source: per name its type and who it is."""

    columns: dict[str, tuple[str, int]] = field(default_factory=lambda: {"id": ("INT", 0)})
    born: int = 1

    def alter(self, step: _Step) -> str | None:
        """Do what a step says, if the source would; return the part of the statement."""
        kind, name, to, type_ = step
        if kind == "add" and name not in self.columns:
            self.columns[name] = type_, self.born
            self.born += 1
            return f"ADD COLUMN `{name}` {type_}"
        if kind == "add" or name not in self.columns:
            return None
        was, who = self.columns[name]
        if kind == "drop":
            del self.columns[name]
            return f"DROP `{name}`"
        if kind == "modify":
            self.columns[name] = type_, who
            return f"MODIFY {name} {type_} NOT NULL"
        if to in self.columns:
            return None
        del self.columns[name]
        self.columns[to] = (type_, who) if kind == "change" else (was, who)
        return (
            f"CHANGE {name} {to} {type_}" if kind == "change" else f"RENAME COLUMN {name} TO {to}"
        )

    def statement(self, steps: Sequence[_Step]) -> list[str]:
        """The parts of a statement in which each name is used once, but for one that is dropped and
        given to a new column.
        """
        parts, used = [], set[str]()
        for kind, name, to, type_ in steps:
            dropped = f"DROP `{name}`" in parts and kind == "add"
            if ({name, to} if kind in ("change", "rename") else {name}) & used and not dropped:
                continue
            if part := self.alter((kind, name, to, type_)):
                parts.append(part)
                used |= {name, to}
        return parts

    def told(self) -> list[dict[str, object]]:
        """The columns as the connector describes them."""
        described = []
        for name, (type_, _) in self.columns.items():
            base, _, digits = type_.partition("(")
            length, _, scale = digits.rstrip(")").partition(",")
            described.append(column(name, base, int(length or -1), int(scale) if scale else None))
        return described


def _take(history: SchemaHistory, value: bytes) -> None:
    change = read_schema_change(value)
    assert isinstance(change, SchemaChange)
    history.take(change)


@given(steps)
def test_statements_and_what_the_connector_tells_make_the_same_history(
    taken: Sequence[Sequence[_Step]],
) -> None:
    model, raw, told = _Model(), SchemaHistory(), SchemaHistory()
    born = "CREATE TABLE x (id INT)"
    _take(raw, connect_record(born, changes=None))
    _take(told, connect_record(born, changes=[("CREATE", "x", model.told())]))
    before = dict(model.columns)
    for at, statement in enumerate(taken):
        parts = model.statement(statement)
        if not parts:
            continue
        ddl, pos = f"ALTER TABLE shop.x {', '.join(parts)}", 100 * (at + 1)
        _take(raw, connect_record(ddl, pos=pos, changes=None))
        _take(told, connect_record(ddl, pos=pos, changes=[("ALTER", "x", model.told())]))
        now = model.columns
        names = {who: name for name, (_, who) in before.items()}
        expected = {
            name: names[who]
            for name, (_, who) in now.items()
            if who in names and names[who] != name
        }
        for history in (raw, told):
            version = history.table(_X)[-1]
            assert version.columns is not None, version.unknown
            assert {name: found.type for name, found in version.columns.items()} == {
                name: type_.partition("(")[0] for name, (type_, _) in now.items()
            }
            if version.position != Position.of(0, 3, pos, 0, 0):
                continue  # nothing changed
            assert dict(version.renamed) == expected
            assert version.added == {n for n, (_, who) in now.items() if who not in names}
        before = dict(now)


@given(st.text(max_size=200))
def test_no_text_is_beyond_reading(text: str) -> None:
    read_statements(text, "shop")


_PIECES = ("ALTER", "TABLE", "x", "ADD", "(", ")", ",", "int", "'", "`", ";", "RENAME", "TO", "1",
           ".", "CREATE", "DROP", "LIKE", "CHANGE", "--", "/*", "DEFAULT", "enum")  # fmt: skip


@given(st.lists(st.sampled_from(_PIECES), max_size=16))
def test_no_statement_of_known_words_is_beyond_reading(pieces: list[str]) -> None:
    read_statements(" ".join(pieces), "shop")


@given(st.binary(max_size=80))
def test_no_bytes_are_beyond_reading(value: bytes) -> None:
    read_schema_change(value)
