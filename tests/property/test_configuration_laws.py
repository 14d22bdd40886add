"""Any configuration gives settings or one named error, and shows no secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.config import Settings, load
from lakesplice.config.environment import PREFIX, variable_name
from lakesplice.config.printing import as_yaml
from lakesplice.config.problems import settings_of
from lakesplice.errors import ConfigurationError

PATHS = [path for path, _ in settings_of(Settings)]
SECTIONS = list(Settings.model_fields)
SECRET = "hunter2"

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just("5m")
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
names = st.one_of(st.sampled_from(sorted({str(p[-1]) for p in PATHS})), st.text(max_size=8))
sections = st.one_of(values, st.dictionaries(names, values, max_size=4))
files = st.dictionaries(st.one_of(st.sampled_from(SECTIONS), st.text(max_size=8)), sections)
variables = st.dictionaries(
    st.one_of(
        st.sampled_from([variable_name(path) for path in PATHS]),
        st.text("ABC_", max_size=12).map(PREFIX.__add__),
    ),
    st.text(max_size=12),
    max_size=4,
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("configuration") / "lakesplice.yaml"


def outcome(file: Path, environment: dict[str, str]) -> Settings | str:
    try:
        return load(file, environment)
    except ConfigurationError as error:
        return str(error)


@pytest.mark.slow
@given(content=files, environment=variables)
def test_any_mapping_gives_settings_or_a_named_error(
    file: Path, content: dict[str, Any], environment: dict[str, str]
) -> None:
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    assert outcome(file, environment)


@given(text=st.one_of(st.text(), st.binary().map(lambda data: data.decode("latin-1"))))
def test_any_text_gives_settings_or_a_named_error(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    assert outcome(file, {})


@given(
    name=st.sampled_from(["sasl.password", "ssl.key.password", "sasl.jaas.config", "my.token"]),
    rest=files,
)
def test_no_refusal_and_no_print_holds_a_secret(
    file: Path, name: str, rest: dict[str, Any]
) -> None:
    kafka = {"bootstrap_servers": "a:1", "topic_pattern": "b", "options": {name: SECRET}}
    file.write_text(yaml.safe_dump({**rest, "kafka": kafka}), encoding="utf-8")
    result = outcome(file, {})
    shown = result if isinstance(result, str) else as_yaml(result) + repr(result)
    assert SECRET not in shown
