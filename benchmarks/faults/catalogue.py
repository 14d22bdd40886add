"""The faults that a person would notice, how each is made, and what the runbook says to do."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable

import yaml

from benchmarks.faults.demo import PREFIX, Demo
from benchmarks.faults.measuring import Fault

_SERVICE, _BROKER, _DATABASE = "the service", "the broker", "MariaDB"
_ORDERS = f"{PREFIX}.shop.orders"


def _made(name: str) -> Callable[[Demo], None]:
    """Return how to make a table of the database, and wait until the lake has it."""

    def make(demo: Demo) -> None:
        demo.sql(
            f"create table shop.{name} (id int primary key, n int null)",
            f"insert into shop.{name} values (1, 1), (2, 2)",
        )
        demo.until(lambda: demo.has(f"shop.{name}", 1), f"{name} is in the lake")

    return make


def _state(table: str, state: str) -> Callable[[Demo], bool]:
    """Return whether the page shows the table in this state."""
    return lambda demo: bool(demo.row(table).get("state") == state)


def _silent(demo: Demo) -> list[str]:
    """The connectors that the page reports as silent."""
    connectors = demo.ask("lake").get("connectors", [])
    return [one["connector"] for one in connectors if one["is_silent"]]


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


def _is_renamed_parked(demo: Demo) -> bool:
    return demo.row("shop.renamed").get("state") == "parked"


def _rename_followed(demo: Demo) -> None:
    demo.snapshot("shop.renamed")
    settings = yaml.safe_load(demo.config.read_text())
    settings["schema_changes"] = {"rename_table": "evolve"}
    demo.config.write_text(yaml.safe_dump(settings))
    _restarted(demo)
    for name in ("shop.former", "shop.renamed"):
        if demo.row(name).get("state") == "parked":
            demo.command("unpark", demo.table(name))


def _restarted(demo: Demo) -> None:
    demo.end(_SERVICE)
    demo.start(_SERVICE)
    demo.until(lambda: bool(demo.ask("lake").get("drives")), "the service drives")


def _records_lost(demo: Demo) -> None:
    demo.end(_SERVICE)
    demo.sql("insert into shop.short values (3, 3)")
    demo.partitions_with_records(f"{PREFIX}.shop.short", 3)
    demo.delete_records(f"{PREFIX}.shop.short")
    demo.start(_SERVICE)


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


def _update_unseen(demo: Demo) -> None:
    demo.sql("set sql_log_bin = 0", "update shop.customers set city = 'Oxford' where id = 1")
    _verified(demo)


def _verified(demo: Demo, *options: str) -> None:
    """Compare a table; a difference settles only if the database changes afterwards."""
    with demo.changing("shop.customers"):
        demo.command("verify", "shop.customers", *options)


def _compaction_stopped(demo: Demo) -> None:
    demo.make_read_only(demo.table("shop.slow") / "base")
    demo.sql(*(f"update shop.slow set n = {n} where id = 1" for n in range(10, 30)))


def _table_read_only(demo: Demo) -> None:
    demo.make_read_only(demo.table("shop.full"))
    demo.sql("update shop.full set n = 5 where id = 1")


FAULTS = (
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
        mend=lambda demo: demo.make_writable(),
        probe="shop.slow",
        prepare=_made("slow"),
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
    Fault(
        name="a table without a key",
        section="no-key",
        provoke=lambda demo: demo.sql(
            "create table shop.keyless (id int not null)", "insert into shop.keyless values (1)"
        ),
        page=_state("shop.keyless", "parked"),
        metric='lakesplice_table_parked{code="no-key"} == 1',
        alert="LakespliceTableParked",
        alert_after=120,
        mend=_key_added,
        probe="shop.keyless",
    ),
    Fault(
        name="a RENAME moves rows without events",
        section="rows-moved",
        provoke=_renamed,
        page=_is_renamed_parked,
        metric='lakesplice_table_parked{code="rows-moved"} == 1',
        alert="LakespliceTableParked",
        alert_after=120,
        mend=_rename_followed,
        probe="shop.renamed",
        prepare=_made("former"),
    ),
    Fault(
        name="records deleted before they were read",
        section="offsets-gone",
        provoke=_records_lost,
        page=_state("shop.short", "parked"),
        metric='lakesplice_table_parked{code="offsets-gone"} == 1',
        alert="LakespliceTableParked",
        alert_after=180,
        mend=_reloaded,
        probe="shop.short",
        prepare=_made("short"),
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
    Fault(
        name="the store refuses writes of a table",
        section='lakesplice_topic_state{state="resting"} is 1',
        provoke=_table_read_only,
        page=_state("shop.full", "resting"),
        metric='lakesplice_topic_state{state="resting"} == 1',
        alert="LakespliceTopicRests",
        alert_after=400,
        mend=lambda demo: demo.make_writable(),
        probe="shop.full",
        prepare=_made("full"),
    ),
    Fault(
        name="the service is killed",
        section="/healthz is not 200",
        provoke=lambda demo: demo.end(_SERVICE, signal.SIGKILL),
        page=lambda demo: not demo.ask("lake").get("drives"),
        metric='up{job="lakesplice"} == 0',
        alert="LakespliceDown",
        alert_after=420,
        mend=lambda demo: demo.start(_SERVICE),
        probe="shop.customers",
    ),
    Fault(
        name="the broker is gone",
        section="lakesplice_last_batch_age_seconds is well above trigger",
        provoke=lambda demo: demo.end(_BROKER, signal.SIGKILL),
        page=lambda demo: bool(demo.ask("lake").get("query_failure")),
        metric="lakesplice_last_batch_age_seconds > 30",
        alert="LakespliceNoBatch",
        alert_after=420,
        mend=lambda demo: demo.start(_BROKER),
        probe="shop.customers",
    ),
    Fault(
        name="the database is gone",
        section="lakesplice_connector_event_age_seconds rises",
        provoke=lambda demo: demo.end(_DATABASE, signal.SIGKILL),
        page=lambda demo: bool(_silent(demo)),
        metric="lakesplice_connector_event_age_seconds > 30",
        alert="LakespliceConnectorSilent",
        alert_after=120,
        mend=lambda demo: demo.start(_DATABASE),
        probe="shop.customers",
    ),
    Fault(
        name="the connector is paused",
        section="lakesplice_connector_event_age_seconds rises",
        provoke=lambda demo: demo.connector("PUT", "/pause"),
        page=lambda demo: bool(_silent(demo)),
        metric="lakesplice_connector_event_age_seconds > 30",
        alert="LakespliceConnectorSilent",
        alert_after=1_000,
        mend=lambda demo: demo.connector("PUT", "/resume"),
        probe="shop.customers",
    ),
)
