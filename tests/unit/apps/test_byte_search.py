"""The search of bytes finds a value wherever a file may still have it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.apps.erasing import byte_search
from lakesplice.apps.erasing.byte_search import search

NAME, NUMBER = "Rosalind Franklin", 1_234_567_890_123
VALUES = [NAME, str(NUMBER), "column:id=7", f"column:name={NAME}", "hex:00c0ffee"]


def parquet(rows: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink, **options)
    return sink.getvalue()


def found(data: bytes, path: str = "x.parquet") -> set[str]:
    return search([(path, data)], VALUES).get(path, set())


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "lz4", "gzip"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_values_of_packed_pages_and_dictionaries_are_found(
    version: str, codec: str, dictionary: bool
) -> None:
    rows = pa.table({"name": ["Ada", NAME, None], "number": [1, NUMBER, None]})
    options = {"compression": codec, "use_dictionary": dictionary, "data_page_version": version}
    data = parquet(rows, write_statistics=False, **options)
    assert found(data) == {NAME, str(NUMBER), f"column:name={NAME}"}
    assert found(parquet(rows.slice(0, 1), **options)) == set()


def test_a_value_of_a_dictionary_that_no_row_has_is_found() -> None:
    """As a filter leaves it, when only the indices of a column are written again."""
    names = pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array(["Ada", NAME]))
    data = parquet(pa.table({"name": names}), compression="zstd", write_statistics=False)
    assert NAME not in pq.read_table(io.BytesIO(data))["name"].cast(pa.string()).to_pylist()
    assert found(data) == {NAME, f"column:name={NAME}"}


def test_bounds_are_found_where_no_page_has_them() -> None:
    rows = pa.table({"name": [NAME]})
    with_bounds = parquet(rows)
    pages_end = pq.ParquetFile(io.BytesIO(with_bounds)).metadata.row_group(0).column(0)
    assert NAME.encode() in with_bounds[pages_end.total_compressed_size + 4 :]
    assert found(with_bounds) >= {NAME}


def test_whole_values_of_columns_are_found_in_avro_and_parquet_and_no_parts() -> None:
    rows = pl.DataFrame({"id": [6, 7], "other": [7, 70], "name": ["x", f"{NAME} jr"]})
    avro = io.BytesIO()
    rows.write_avro(avro)
    assert found(avro.getvalue(), "x.avro") == {NAME, "column:id=7"}
    assert found(parquet(rows.to_arrow())) == {NAME, "column:id=7"}
    assert found(parquet(rows.head(1).to_arrow())) == set()


def test_values_are_found_in_json_numbers_and_raw_bytes() -> None:
    assert found(json.dumps({"a": NAME}).encode(), "x.json") == {NAME, f"column:name={NAME}"}
    assert found(f'{{"n":{NUMBER}}}'.encode(), "x.json") == {str(NUMBER)}
    assert found(b"..\x00\xc0\xff\xee", "x.run") == {"hex:00c0ffee"}
    assert found(b"7 77", "x.json") == set()


def test_a_folder_is_searched_with_hidden_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, values = tmp_path / "lake", tmp_path / "values"
    (folder / ".hidden").mkdir(parents=True)
    (folder / "a.json").write_bytes(b"nothing")
    values.write_text(f"{NAME}\n\n{NAME}\n")
    assert byte_search.main(str(folder), str(values)) == 0
    (folder / ".hidden" / "b").write_bytes(NAME.encode())
    assert byte_search.main(str(folder), str(values)) == 1
    assert ".hidden/b: 1 of the values" in capsys.readouterr().out


def test_a_value_is_found_at_every_offset_of_the_blocks_that_are_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(byte_search, "_BLOCK", 8)
    for offset in range(20):
        assert found(b"." * offset + NAME.encode() + b".", "x.run") == {NAME}
