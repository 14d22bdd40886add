"""Which Iceberg catalogs the properties of the settings open, without asking one."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.errors import ConfigurationError, StorageError
from lakesplice.model.names import TableName
from lakesplice.storage.iceberg.catalog import open_mirror
from lakesplice.storage.iceberg.mirror_table import IcebergMirror
from lakesplice.storage.local import LocalStore

NAME = TableName("shop", "orders")


def opened(folder: Path, properties: dict[str, str]) -> IcebergMirror:
    return open_mirror(properties, LocalStore(folder), NAME)


@pytest.mark.slow
def test_the_properties_of_the_documentation_open_a_glue_catalog(tmp_path: Path) -> None:
    mirror = opened(
        tmp_path,
        {"type": "glue", "glue.region": "eu-central-1", "glue.id": "123456789012"},
    )
    assert type(mirror.catalog).__name__ == "GlueCatalog"
    assert mirror.catalog.properties["glue.id"] == "123456789012"


def test_a_catalog_whose_package_is_missing_says_which_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="isn't installed") as refused:
        opened(tmp_path, {"type": "hive", "uri": "thrift://metastore:9083"})
    assert "pyiceberg[hive]" in str(refused.value)


def test_an_error_shows_no_password_of_the_catalog(tmp_path: Path) -> None:
    folder = tmp_path / "no" / "such"
    uri = f"sqlite:///{folder}/catalog.db?password=hunter2"
    with pytest.raises(StorageError, match="doesn't answer") as failed:
        opened(tmp_path, {"type": "sql", "uri": uri})
    assert "hunter2" not in str(failed.value)


@pytest.mark.parametrize("properties", [{"type": "rset", "uri": "http://c"}, {"type": "rest"}, {}])
def test_properties_that_name_no_catalog_are_an_error_of_the_configuration(
    properties: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=r"iceberg\.catalog"):
        opened(tmp_path, properties)
