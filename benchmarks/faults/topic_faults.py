"""Faults of topics, files and the source's binlog, how each is made, and what the runbook says to
do.
"""

from __future__ import annotations

from pathlib import Path

from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    KafkaAdminClient,
    ResourcePattern,
    ResourceType,
)

from benchmarks.faults.demo import PREFIX, Demo
from benchmarks.faults.measuring import Fault
from benchmarks.faults.table_faults import parking, resting, table_made

_COPY = f"{PREFIX}.copy.shop.orders"
_WITHOUT_COPY = rf"{PREFIX}\.(?!copy\.).*"
_BROKER = "the broker"
# Who sends no name may do everything with a topic, until the topic has rules of its own.
_AUTHORIZER = """
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
"""
_SECRET, _NOBODY = f"{PREFIX}.shop.secret", "User:ANONYMOUS"
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


def _rights_asked(demo: Demo) -> None:
    """Make a table, and restart the broker as one that asks who has which right."""
    table_made("secret")(demo)
    properties = Path(demo.arguments(_BROKER)[-1])
    properties.write_text(properties.read_text() + _AUTHORIZER)
    demo.end(_BROKER)
    demo.start(_BROKER)
    row = demo.insert("shop.secret")
    demo.until(lambda: demo.has("shop.secret", row), "a row comes through the broker")


def _right_missing(demo: Demo) -> None:
    """Let everybody write into a topic and nobody read it."""
    topic = ResourcePattern(ResourceType.TOPIC, _SECRET)
    admin = KafkaAdminClient(bootstrap_servers=demo.at["kafka"])
    admin.create_acls(
        [
            ACL(_NOBODY, "*", operation, ACLPermissionType.ALLOW, topic)
            for operation in (ACLOperation.WRITE, ACLOperation.DESCRIBE)
        ]
    )
    admin.close()
    demo.sql("update shop.secret set n = 5 where id = 1")


def _right_given(demo: Demo) -> None:
    topic = ResourcePattern(ResourceType.TOPIC, _SECRET)
    admin = KafkaAdminClient(bootstrap_servers=demo.at["kafka"])
    admin.create_acls([ACL(_NOBODY, "*", ACLOperation.READ, ACLPermissionType.ALLOW, topic)])
    admin.close()


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
    resting(
        "shop.secret",
        name="the service's user may not read a topic",
        provoke=_right_missing,
        mend=_right_given,
        prepare=_rights_asked,
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
