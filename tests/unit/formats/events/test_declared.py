"""Declared types: what a user may write, and what is refused."""

from __future__ import annotations

import pickle

import pytest

from lakesplice.errors import ConfigurationError
from lakesplice.formats.events import DeclaredType, declare
from lakesplice.formats.events.values.encoding import Encoding


@pytest.mark.parametrize(
    ("text", "type_", "encoding"),
    [
        ("long", "long", Encoding.PLAIN),
        ("BIGINT", "long", Encoding.PLAIN),
        ("tinyint", "byte", Encoding.PLAIN),
        ("boolean", "boolean", Encoding.PLAIN),
        ("decimal(12, 2)", "decimal(12,2)", Encoding.DECIMAL_BASE64),
        ("decimal_text(38,0)", "decimal(38,0)", Encoding.DECIMAL_TEXT),
        ("date", "date", Encoding.DATE_DAYS),
        ("timestamp", "timestamp", Encoding.TIMESTAMP_ZONED),
        ("datetime", "timestamp", Encoding.TIMESTAMP_MILLIS),
        ("datetime(3)", "timestamp", Encoding.TIMESTAMP_MILLIS),
        ("datetime(4)", "timestamp", Encoding.TIMESTAMP_MICROS),
        ("timestamp_nanos", "timestamp", Encoding.TIMESTAMP_NANOS),
        ("time", "long", Encoding.PLAIN),
        ("year", "integer", Encoding.PLAIN),
        ("blob", "binary", Encoding.BASE64),
        ("text", "string", Encoding.PLAIN),
        ("time_of_day", "long", Encoding.PLAIN),
        ("SET", "string", Encoding.PLAIN),
        ("bit(1)", "boolean", Encoding.PLAIN),
        ("bit(64)", "binary", Encoding.BASE64),
        ("int unsigned", "long", Encoding.PLAIN),
        ("bigint unsigned", "decimal(20,0)", Encoding.DECIMAL_BASE64),
        ("VARCHAR(255)", "string", Encoding.PLAIN),
        ("char(36)", "string", Encoding.PLAIN),
        ("mediumtext", "string", Encoding.PLAIN),
        ("varbinary(16)", "binary", Encoding.BASE64),
        ("longblob", "binary", Encoding.BASE64),
        ("int(11)", "integer", Encoding.PLAIN),
        ("bigint(20) unsigned", "decimal(20,0)", Encoding.DECIMAL_BASE64),
    ],
)
def test_a_declaration_names_a_type_and_how_it_is_sent(
    text: str, type_: str, encoding: Encoding
) -> None:
    declared = DeclaredType.parse(text)
    assert (declared.type.name, declared.encoding) == (type_, encoding)
    again = DeclaredType.parse(declared.name)
    assert (again.name, again.type, again.encoding) == (
        declared.name,
        declared.type,
        declared.encoding,
    )
    assert pickle.loads(pickle.dumps(declared)) == declared


def test_another_length_is_no_other_type() -> None:
    assert DeclaredType.parse("varchar(10)") == DeclaredType.parse("varchar(20)")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tinyint(1)",
        "varchar",
        "decimal",
        "decimal(39,0)",
        "decimal(5,6)",
        "datetime(7)",
        "struct",
    ],
)
def test_an_unknown_declaration_is_refused_with_its_column(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        declare({"id": "long", "odd": text})
    assert caught.value.facts["column"] == "odd"
    assert caught.value.facts["type"] == text


def test_another_encoding_is_another_source_type() -> None:
    texts = ["timestamp", "timestamp_millis", "timestamp_micros", "decimal(5,2)", "decimal(5,3)"]
    assert len({DeclaredType.parse(text).cell("c").source_type for text in texts}) == len(texts)
    assert DeclaredType.parse("bigint").cell("c") == DeclaredType.parse("long").cell("c")
