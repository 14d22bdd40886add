"""Metrics of topics: which state each is in, and how far its table is behind. Of the catalogue."""

from __future__ import annotations

from lakesplice.telemetry.metric import TABLE, Label, gauge

TOPIC_STATE = gauge(
    "topic_state",
    "1",
    "1 for the state that a topic of `kafka.topic_pattern` is in: `running`, `waiting` (it has no"
    " table yet), `resting` (what failed is retried after a pause), `parked`, `refused` (the"
    " configuration has to change) or `excluded` (by the configuration).",
    "`lakesplice tables` says why and since when.",
    Label("topic"),
    TABLE,
    Label("state"),
)
TABLES_NOT_MADE = gauge(
    "tables_not_made",
    "topics",
    "Topics without a table that get none, by `schema_changes.create_table: ignore`.",
    "The log's `table-not-made` names them; they aren't read, so nothing of them is passed over.",
)
LAG = gauge(
    "kafka_consumer_lag_records",
    "records",
    "Records of the table's topic that aren't committed yet, over all its partitions.",
    "Rising: ingest can't keep up, or the table is parked.",
    TABLE,
)
