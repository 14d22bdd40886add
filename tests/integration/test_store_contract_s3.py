"""What every `Store` promises, on a real S3 server."""

from __future__ import annotations

import pytest

from lakesplice.storage.objects import ObjectStore
from lakesplice.storage.stores import open_store
from lakesplice.table.protocol.ports import Store
from lakesplice.testing.s3_server import S3Server, options
from tests.unit.storage.test_store_contract import (  # noqa: F401  they run here again
    test_a_file_is_deleted_once_and_again_without_error,
    test_a_file_knows_when_it_was_written,
    test_a_file_put_is_read_back,
    test_a_file_that_is_not_there_is_a_missing_file,
    test_a_path_out_of_the_store_is_refused,
    test_a_second_put_is_refused_and_changes_nothing,
    test_a_store_within_shares_its_files,
    test_a_writer_left_by_an_exception_leaves_nothing,
    test_a_writer_refuses_an_existing_name_and_leaves_it_alone,
    test_a_writer_takes_raw_bytes_and_parquet,
    test_an_empty_file_opens,
    test_folders_are_those_with_files_below,
    test_list_yields_the_paths_that_start_with_the_prefix_in_order,
    test_one_of_many_simultaneous_puts_wins_completely,
    test_size_of_a_file_that_is_not_there_is_none,
)


@pytest.fixture(params=["", "deep/lake", "within"])
def store(request: pytest.FixtureRequest, s3_server: S3Server) -> Store:
    bucket = s3_server.make_bucket()
    prefix = "" if request.param == "within" else request.param
    made = open_store(f"s3://{bucket}/{prefix}", options(s3_server.endpoint))
    assert isinstance(made, ObjectStore)
    return made.within("a/b") if request.param == "within" else made
