"""The printed configuration says everything, can be read back, and keeps secrets."""

from __future__ import annotations

import string
from pathlib import Path

import annotated_types
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.config import Settings, load
from lakesplice.config.document import configuration_page
from lakesplice.config.options import Options
from lakesplice.config.printing import as_values, as_yaml, json_schema
from lakesplice.config.problems import purpose, settings_of
from lakesplice.config.quantities import bytes_of, duration_text, seconds_of, size_text
from lakesplice.config.sections.tables import TableSettings
from lakesplice.errors import ConfigurationError
from lakesplice.secrets import masked_option, shown_option

VARIABLES = {
    "LAKESPLICE_KAFKA__BOOTSTRAP_SERVERS": "a:1",
    "LAKESPLICE_KAFKA__TOPIC_PATTERN": "shop\\..*",
    "LAKESPLICE_LAKE__ROOT": "/lake: #1",
    "LAKESPLICE_TRIGGER": "1500ms",
    "LAKESPLICE_METADATA__COLUMNS": "[op_ts, op]",
    "LAKESPLICE_TABLES": "[{match: 'shop.*', columns: {id: 'decimal(12,2)'},"
    " shape: {computed: {month: \"date_format(at, 'yyyy-MM')\"}}}]",
}


def test_printed_settings_are_read_back_the_same(tmp_path: Path) -> None:
    settings = load(None, VARIABLES)
    file = tmp_path / "printed.yaml"
    file.write_text(as_yaml(settings), encoding="utf-8")
    assert load(file, {}) == settings


def test_secrets_are_masked_in_print() -> None:
    settings = load(None, {**VARIABLES, "LAKESPLICE_KAFKA__OPTIONS__SASL_PASSWORD": "hunter2"})
    assert "hunter2" not in as_yaml(settings)
    assert "hunter2" not in str(as_values(settings))
    assert "sasl.password: '********'" in as_yaml(settings)


@pytest.mark.parametrize(
    ("section", "name"),
    [
        *(
            ("lake", name)
            for name in (
                *("account_key", "azure_storage_account_key", "azure_storage_sas_key", "sas_token"),
                *("google_service_account_key", "aws_sse_customer_key_base64", "aws_access_key_id"),
                *("azure_client_secret", "connection_string", "an_option_of_next_year"),
            )
        ),
        ("spark", "spark.hadoop.fs.azure.account.key.mine.dfs.core.windows.net"),
        ("spark", "spark.executorEnv.MYSQL_PWD"),
        ("spark", "spark.sql.streaming.some.password"),
        ("spark", "spark.driver.extraJavaOptions"),
        ("kafka", "sasl.jaas.config"),
        ("kafka", "ssl.keystore.key"),
        ("kafka", "sasl.oauthbearer.anything"),
    ],
)
def test_an_option_that_is_not_known_to_be_harmless_is_not_shown(
    section: str, name: str, tmp_path: Path
) -> None:
    file = tmp_path / "lakesplice.yaml"
    base = {
        "kafka": {"bootstrap_servers": "a:1", "topic_pattern": ".*"},
        "lake": {"root": "/lake"},
    }
    file.write_text(
        yaml.safe_dump(base | {section: base.get(section, {}) | {"options": {name: "hunter2"}}})
    )
    settings = load(file, {})
    printed = (
        as_yaml(settings),
        str(as_values(settings)),
        repr(settings),
        settings.model_dump_json(),
    )
    assert not [text for text in printed if "hunter2" in text]
    assert "****" in printed[0]
    file.write_text(
        yaml.safe_dump(base | {section: base.get(section, {}) | {"options": {name: ["hunter2"]}}})
    )
    with pytest.raises(ConfigurationError) as refused:
        load(file, {})
    assert name in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.slow
@given(st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=40))
def test_options_are_shown_by_a_list_of_names_and_by_nothing_else(name: str) -> None:
    shown = masked_option(name, "hunter2") == "hunter2"
    assert shown == shown_option(name)
    assert not shown_option(f"{name}.password")


@pytest.mark.parametrize(
    "name",
    [
        *("aws_region", "AWS_ENDPOINT", "allow_http", "azure_storage_account_name"),
        *("security.protocol", "ssl.truststore.location", "kafka.client.id"),
        *("spark.ui.port", "spark.executor.memory", "spark.sql.adaptive.enabled"),
    ],
)
def test_an_option_that_is_known_to_be_harmless_is_shown_but_for_passwords_in_addresses(
    name: str,
) -> None:
    assert Options({name: "4040"}).masked() == {name: "4040"}
    assert "hunter2" not in masked_option(name, "https://me:hunter2@host")


def test_a_table_named_like_a_secret_is_printed_and_read_back(tmp_path: Path) -> None:
    tables = (
        "[{match: 'shop.password_resets', columns: {password: string, token: 'decimal(12,2)'},"
        " key: [token], shape: {masks: {secret: redact, api_key: 'truncate(4)'},"
        " computed: {private: upper(name)}}}]"
    )
    settings = load(None, {**VARIABLES, "LAKESPLICE_TABLES": tables})
    assert "****" not in as_yaml(settings)
    file = tmp_path / "printed.yaml"
    file.write_text(as_yaml(settings), encoding="utf-8")
    assert load(file, {}) == settings
    assert as_values(settings)["tables"][0]["columns"]["password"] == "string"


def test_every_setting_says_what_it_is_for_and_where_its_bounds_are() -> None:
    for path, info in settings_of(Settings):
        assert purpose(info).endswith("."), path
        if info.annotation in (int, float):
            bounds = {type(mark) for mark in info.metadata}
            assert annotated_types.Le in bounds, path
            assert bounds & {annotated_types.Ge, annotated_types.Gt}, path


def test_every_name_is_printed_with_its_comment() -> None:
    text = as_yaml(load(None, VARIABLES))
    for path, info in settings_of(Settings):
        assert f"{path[-1]}:" in text
        assert purpose(info).split()[0] in text


def test_the_json_schema_knows_every_section() -> None:
    schema = json_schema()
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == set(Settings.model_fields)


@given(st.integers(1, 10**9).map(lambda count: count / 1000))
def test_a_duration_is_read_back_as_it_is_printed(seconds: float) -> None:
    assert seconds_of(duration_text(seconds)) == pytest.approx(seconds, rel=1e-5)


@given(st.integers(0, 2**50))
def test_a_size_is_read_back_as_it_is_printed(count: int) -> None:
    assert bytes_of(size_text(count)) == count


@pytest.mark.slow
@given(st.text(max_size=20))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    for parse in (seconds_of, bytes_of):
        try:
            parse(text)
        except ValueError:
            continue


def test_the_printed_file_is_plain_yaml() -> None:
    assert yaml.safe_load(as_yaml(load(None, VARIABLES)))["trigger"] == "1500ms"


def test_the_document_is_made_from_the_settings() -> None:
    page = Path(__file__).parents[3] / "docs" / "configuration.md"
    assert page.read_text(encoding="utf-8") == configuration_page()


def test_the_document_has_every_field_of_an_entry_of_tables_with_its_choices() -> None:
    page = configuration_page()
    for path, _ in settings_of(TableSettings):
        assert f"### `tables[].{'.'.join(map(str, path))}`" in page
    _, _, purge_after = page.partition("### `tables[].purge_after`")
    assert "- allowed: 1h to 3650d" in purge_after
    _, _, not_inserts = page.partition("### `tables[].not_inserts`")
    assert "- allowed: park or dead-letter" in not_inserts
