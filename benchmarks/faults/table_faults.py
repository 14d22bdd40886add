"""Faults of single tables, how each is made, and what the runbook says to do."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from benchmarks.faults.demo import PREFIX, SERVICE, Demo
from benchmarks.faults.measuring import Fault

_ORDERS = f"{PREFIX}.shop.orders"
_NOISY = f"{PREFIX}.shop.noisy"
_MANY = 1_000
_DROPPED = ("--reason", "not-json", "--why", "junk")


def table_made(name: str) -> Callable[[Demo], None]:
    """Return how to make a table of the database, and wait until the lake has it."""

    def make(demo: Demo) -> None:
        demo.sql(
            f"create table shop.{name} (id int primary key, n int null)",
            f"insert into shop.{name} values (1, 1), (2, 2)",
        )
        demo.until(lambda: demo.has(f"shop.{name}", 1), f"{name} is in the lake")

    return make


def in_state(table: str, state: str) -> Callable[[Demo], bool]:
    """Return whether the page shows the table in this state."""
    return lambda demo: bool(demo.row(table).get("state") == state)


def _dead_letter_mended(demo: Demo) -> None:
    demo.snapshot("shop.orders")
    listed = demo.command("dlq", "list", demo.table("shop.orders"), "--json")
    letters = [json.loads(line) for line in listed.splitlines() if line.startswith("{")]
    for letter in letters:
        options = f"--letter {letter['partition']}:{letter['offset']} --why no-event"
        demo.command("dlq", "drop", demo.table("shop.orders"), *options.split())


def _key_added(demo: Demo) -> None:
    # The record that parked the table is the first one of the topic.
    (at,) = demo.partitions_with_records(f"{PREFIX}.shop.keyless", 1)
    demo.sql("alter table shop.keyless add primary key (id)")
    demo.command("unpark", demo.table("shop.keyless"), "--from-offset", f"{at}:1")


def _renamed(demo: Demo) -> None:
    demo.sql("rename table shop.former to shop.renamed", "insert into shop.renamed values (3, 3)")


def _rename_followed(demo: Demo) -> None:
    parked = [name for name in ("shop.former", "shop.renamed") if in_state(name, "parked")(demo)]
    demo.snapshot("shop.renamed")
    demo.configure("schema_changes", {"rename_table": "evolve"})
    demo.restart_service()
    for name in parked:
        demo.command("unpark", demo.table(name))


def _records_lost(demo: Demo) -> None:
    demo.end(SERVICE)
    demo.sql("insert into shop.short values (3, 3)")
    demo.partitions_with_records(f"{PREFIX}.shop.short", 3)
    demo.delete_records(f"{PREFIX}.shop.short")
    demo.start(SERVICE)


def _reloaded(demo: Demo) -> None:
    demo.snapshot("shop.short")
    demo.command("reset", demo.table("shop.short"), "--anew", "--why", "records were lost")
    demo.until(lambda: demo.has("shop.short", 3), "the lost row is there")


def _nulls_replaced(demo: Demo) -> None:
    demo.setting("value.converter.replace.null.with.default", "true")
    demo.sql("insert into shop.orders (id, total, customer_id, status) values (900, null, 1, 'x')")


def _nulls_kept(demo: Demo) -> None:
    demo.setting("value.converter.replace.null.with.default", "false")
    demo.snapshot("shop.orders")


def _many_letters_mended(demo: Demo) -> None:
    """They are read as dead letters after all, then dropped, and the table is compared."""
    demo.configure("dead_letters", {"share_max": 1.0})
    demo.restart_service()
    demo.command("unpark", demo.table("shop.noisy"))
    demo.until(lambda: demo.row("shop.noisy").get("dead_letters") == _MANY, "all are stored")
    demo.command("dlq", "drop", demo.table("shop.noisy"), *_DROPPED)


def _update_unseen(demo: Demo) -> None:
    demo.sql("set sql_log_bin = 0", "update shop.customers set city = 'Oxford' where id = 1")
    _verified(demo)


def _verified(demo: Demo, *options: str) -> None:
    """Compare a table; a difference settles only if the database changes afterwards."""
    with demo.changing("shop.customers"):
        # 1: rows differ.
        demo.command("verify", "shop.customers", *options, ends=(0, 1))


def _compaction_stopped(demo: Demo) -> None:
    demo.disks.make_read_only(demo.table("shop.slow") / "base")
    demo.sql(*(f"update shop.slow set n = {n} where id = 1" for n in range(10, 30)))


def _committed_to(demo: Demo) -> None:
    """Write a commit into the table's log as a program does that doesn't read the protocol."""
    versions = sorted((demo.table("shop.shared") / "_delta_log").glob("*.json"))
    info = {"timestamp": int(time.time() * 1000), "operation": "WRITE"}
    text = json.dumps({"commitInfo": info}) + "\n"
    versions[-1].with_name(f"{len(versions):020d}.json").write_text(text)
    demo.sql("update shop.shared set n = 5 where id = 1")


def _commit_undone(demo: Demo) -> None:
    versions = len([*(demo.table("shop.shared") / "_delta_log").glob("*.json")])
    demo.command("restore", demo.table("shop.shared"), "--version", str(versions - 2))


def _table_read_only(demo: Demo) -> None:
    demo.disks.make_read_only(demo.table("shop.full"))
    demo.sql("update shop.full set n = 5 where id = 1")


def parking(
    table: str,
    code: str,
    *,
    name: str,
    provoke: Callable[[Demo], object],
    mend: Callable[[Demo], object],
    prepare: Callable[[Demo], object] = lambda _: None,
    alert_after: float = 120,
    or_code: str = "",
) -> Fault:
    """Return a fault that parks a table for the reason with this code, or with `or_code`, depending
    on which is noticed first.
    """
    codes = f'=~"{code}|{or_code}"' if or_code else f'="{code}"'
    return Fault(
        name=name,
        section=code,
        provoke=provoke,
        page=in_state(table, "parked"),
        metric=f"lakesplice_table_parked{{code{codes}}} == 1",
        alert="LakespliceTableParked",
        alert_after=alert_after,
        mend=mend,
        probe=table,
        prepare=prepare,
    )


def resting(
    table: str,
    *,
    name: str,
    provoke: Callable[[Demo], object],
    mend: Callable[[Demo], object],
    prepare: Callable[[Demo], object],
) -> Fault:
    """Return a fault for which a table rests until its cause is corrected."""
    return Fault(
        name=name,
        section='lakesplice_topic_state{state="resting"} is 1',
        provoke=provoke,
        page=in_state(table, "resting"),
        metric='lakesplice_topic_state{state="resting"} == 1',
        alert="LakespliceTopicRests",
        alert_after=400,
        mend=mend,
        probe=table,
        prepare=prepare,
    )


TABLE_FAULTS = (
    parking(
        "shop.noisy",
        "dead-letters",
        name="a thousand records that aren't events",
        provoke=lambda demo: demo.send(_NOISY, b"{}", b"no JSON", count=_MANY),
        mend=_many_letters_mended,
        prepare=table_made("noisy"),
    ),
    Fault(
        name="a record that isn't an event",
        section="lakesplice_dead_letters_total rises",
        provoke=lambda demo: demo.send(_ORDERS, b"{}", b"no JSON"),
        page=lambda demo: bool(demo.row("shop.orders").get("dead_letters")),
        metric="lakesplice_dead_letters_total > 0",
        alert="LakespliceDeadLetters",
        alert_after=60,
        mend=_dead_letter_mended,
        probe="shop.customers",
    ),
    Fault(
        name="compaction can't write",
        section="lakesplice_delta_oldest_age_seconds is above compaction.age_max",
        provoke=_compaction_stopped,
        page=lambda demo: bool(demo.row("shop.slow").get("compaction_failure")),
        metric='lakesplice_compactions_total{result="failed"} > 0',
        alert="LakespliceCompactionFails",
        alert_after=120,
        mend=lambda demo: demo.disks.make_writable(),
        probe="shop.slow",
        prepare=table_made("slow"),
    ),
    Fault(
        name="rows differ from the database",
        section="lakesplice_differing_rows_total rises",
        provoke=_update_unseen,
        page=lambda demo: bool((demo.row("shop.customers").get("verified") or {}).get("different")),
        metric="lakesplice_differing_rows_total > 0",
        alert="LakespliceTableDiffers",
        alert_after=60,
        mend=lambda demo: _verified(demo, "--repair"),
        probe="shop.customers",
    ),
    parking(
        "shop.keyless",
        "no-key",
        name="a table without a key",
        provoke=lambda demo: demo.sql(
            "create table shop.keyless (id int not null)", "insert into shop.keyless values (1)"
        ),
        mend=_key_added,
    ),
    parking(
        "shop.renamed",
        "rows-moved",
        name="a RENAME moves rows without events",
        provoke=_renamed,
        mend=_rename_followed,
        prepare=table_made("former"),
    ),
    parking(
        "shop.short",
        "offsets-gone",
        name="records deleted before they were read",
        provoke=_records_lost,
        alert_after=180,
        mend=_reloaded,
        prepare=table_made("short"),
    ),
    resting(
        "shop.shared",
        name="another program commits to a table",
        provoke=_committed_to,
        mend=_commit_undone,
        prepare=table_made("shared"),
    ),
    Fault(
        name="a setting of the connector changes values",
        section="lakesplice_suspect_setting is 1",
        provoke=_nulls_replaced,
        page=lambda demo: bool(demo.row("shop.orders").get("suspect_settings")),
        metric="lakesplice_suspect_setting == 1",
        alert="LakespliceConnectorChangesValues",
        alert_after=150,
        mend=_nulls_kept,
        probe="shop.customers",
        stays="told for a day after the last event that showed it",
    ),
    resting(
        "shop.full",
        name="the store refuses writes of a table",
        provoke=_table_read_only,
        mend=lambda demo: demo.disks.make_writable(),
        prepare=table_made("full"),
    ),
)
