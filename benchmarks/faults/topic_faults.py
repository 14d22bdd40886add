"""Faults of topics, files and the source's binlog, how each is made, and what the runbook says to
do.
"""

from __future__ import annotations

from pathlib import Path

from kafka.admin import KafkaAdminClient

from benchmarks.faults.demo import PREFIX, Demo
from benchmarks.faults.measuring import Fault
from benchmarks.faults.table_faults import parking, table_made

_COPY = f"{PREFIX}.copy.shop.orders"
_WITHOUT_COPY = rf"{PREFIX}\.(?!copy\.).*"
_HARM = b"\0" * 64


def _copy_refused(demo: Demo) -> bool:
    rows = demo.ask("tables").get("tables", [])
    return any(row["topic"] == _COPY and row["state"] == "refused" for row in rows)


def _copy_left_out(demo: Demo) -> None:
    demo.configure("kafka", {**demo.section("kafka"), "topic_pattern": _WITHOUT_COPY})
    demo.restart_service()


def _base_file_damaged(demo: Demo) -> None:
    """Write zeros over the pages of a base file, after a backup; the next compaction reads it."""
    (file,) = demo.table("shop.broken").glob("base/*.parquet")
    whole = file.read_bytes()
    demo.kept[str(file)] = whole
    file.chmod(0o644)
    file.write_bytes(whole[:4] + _HARM + whole[4 + len(_HARM) :])
    demo.sql("update shop.broken set n = 5 where id = 1")


def _restored(demo: Demo) -> None:
    for file, whole in demo.kept.items():
        Path(file).write_bytes(whole)
    demo.command("unpark", demo.table("shop.broken"))


def _topic_made_again(demo: Demo) -> None:
    admin = KafkaAdminClient(bootstrap_servers=demo.at["kafka"])
    admin.delete_topics([f"{PREFIX}.shop.again"])
    admin.close()
    demo.sql("insert into shop.again values (3, 3)")


def _loaded_again(demo: Demo) -> None:
    demo.snapshot("shop.again")
    demo.command("reset", demo.table("shop.again"), "--anew", "--why", "the topic was re-created")
    demo.until(lambda: demo.has("shop.again", 1) and demo.has("shop.again", 3), "all rows")


def _change_unlogged(demo: Demo) -> None:
    """Change a row without the binlog, as one that was purged before it was read, then with it."""
    demo.sql("set sql_log_bin = 0", "update shop.missing set n = 7 where id = 1")
    demo.sql("update shop.missing set n = 8 where id = 1")


TOPIC_FAULTS = (
    Fault(
        name="a topic that can't have a table",
        section='lakesplice_topic_state{state="refused"} is 1',
        provoke=lambda demo: demo.send(_COPY, b"{}", b"{}"),
        page=_copy_refused,
        metric='lakesplice_topic_state{state="refused"} == 1',
        alert="LakespliceTopicRefused",
        alert_after=120,
        mend=_copy_left_out,
        probe="shop.customers",
    ),
    parking(
        "shop.broken",
        "corrupt",
        name="a base file is damaged",
        provoke=_base_file_damaged,
        alert_after=180,
        mend=_restored,
        prepare=table_made("broken"),
    ),
    parking(
        "shop.again",
        "topic-recreated",
        or_code="offsets-gone",
        name="a topic is deleted and created again",
        provoke=_topic_made_again,
        alert_after=180,
        mend=_loaded_again,
        prepare=table_made("again"),
    ),
    Fault(
        name="a change is missing from the binlog",
        section="lakesplice_changes_unlinked_total rises",
        provoke=_change_unlogged,
        page=lambda demo: bool(demo.row("shop.missing").get("missing_changes")),
        metric="lakesplice_changes_unlinked_total > 0",
        alert="LakespliceChangesMissing",
        alert_after=60,
        mend=lambda demo: demo.snapshot("shop.missing"),
        probe="shop.missing",
        prepare=table_made("missing"),
        stays="the counter tells it until the service is restarted",
    ),
)
