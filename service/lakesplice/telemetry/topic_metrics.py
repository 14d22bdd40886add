"""Metrics of topics: which state each is in, how far its table is behind, and what its events show
of its connector. Of the catalogue.
"""

from __future__ import annotations

from lakesplice.telemetry.metric import TABLE, Label, age, gauge

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
    "The log's `table-not-made` names them; they aren't read, so nothing of them is skipped.",
)
LAG = gauge(
    "kafka_consumer_lag_records",
    "records",
    "Records of the table's topic that aren't committed yet, over all its partitions.",
    "Rising: ingest can't keep up, or the table is parked.",
    TABLE,
)
SUSPECT_SETTING = gauge(
    "suspect_setting",
    "1",
    "1 for a setting of the connector or its converter that changes values, where an event of the"
    " topic that was read within the last day showed it, and for what its schema changes tell that"
    " the binlog lacks (`foreign-key-cascades`).",
    "`lakesplice tables` says what it does; correct it at the connector, then take a new snapshot.",
    Label("topic"),
    TABLE,
    Label("setting"),
)
CONNECTOR_AGE = age(
    "connector_event_age_seconds",
    "How long ago a connector last wrote a record to Kafka, heartbeats included. What its topics'"
    " names begin with tells a connector; `heartbeats` says whether it has a topic of them.",
    "Look at the connector in Kafka Connect; without heartbeats the source may just be silent.",
    *(Label("connector"), Label("heartbeats", ("yes", "no"))),
)
