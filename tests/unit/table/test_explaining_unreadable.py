"""To which key's story a record belongs that can't be read."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc

from lakesplice.model.names import TableName
from lakesplice.planning.intake.line import RecordReading
from lakesplice.storage.local import LocalStore
from lakesplice.table.explaining.key_story import explain_key
from lakesplice.table.explaining.record_values import RecordOutcome
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.reading.table import Table
from tests.support.fates import access_to
from tests.support.simulated import Source, driver_of


def test_a_record_that_cannot_be_read_is_of_the_key_whose_changes_have_the_same_bytes_as_key(
    tmp_path: Path,
) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path), key=("name",))
    for change in (*source.put(5), *source.put(6), *source.put(7)):
        source.topic.append(0, [change, change._replace(value=b"no JSON")])
    driver.batch()
    reading = RecordReading(table=TableName("shop", "goods"), key=("name",))
    (name,) = Table(driver.table.store).read(filter=pc.field("id") == 5)["name"].to_pylist()
    story = explain_key(
        driver.table.store,
        open_snapshot(driver.table.store),
        name,
        access=access_to(source.topic, reading),
    )
    assert [(fate.offset, fate.outcome) for fate in story.records] == [
        (0, RecordOutcome.APPLIED),
        (1, RecordOutcome.DEAD_LETTER),
    ]
