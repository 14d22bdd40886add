"""Metrics of topics, a part of the catalogue: each topic's state, how far its table is behind, and
what its events show about the connector.
"""

from __future__ import annotations

from lakesplice.telemetry.metric import TABLE, Label, age, gauge

TOPIC_STATE = gauge(
    "topic_state",
    "1",
    "1 for the state that a topic of `kafka.topic_pattern` is in: `running`, `waiting` (it has"
    " no table yet), `resting` (something failed and is retried after a pause), `parked`,"
    " `refused` (the configuration has to change) or `excluded` (by the configuration).",
    "`lakesplice tables` says why and since when.",
    Label("topic"),
    TABLE,
    Label("state"),
)
TABLES_NOT_MADE = gauge(
    "tables_not_made",
    "topics",
    "Topics that get no table, because `schema_changes.create_table` is `ignore`.",
    "The log event `table-not-made` names them. They aren't read, so none of their records is"
    " skipped.",
)
LAG = gauge(
    "kafka_consumer_lag_records",
    "records",
    "Records of the table's topic that aren't committed yet, over all its partitions.",
    "If it rises, ingest can't keep up, or the table is parked.",
    TABLE,
)
GAP_RECORDS = gauge(
    "gap_records",
    "records",
    "Records of the table's topic that were passed over and not read since: an operator skipped"
    " them, or the broker lost them and `missing_offsets` is `continue`.",
    "`lakesplice tables` shows their offsets. A snapshot of the whole table, a reset to before"
    " them or a reload closes the gap.",
    TABLE,
)
SUSPECT_SETTING = gauge(
    "suspect_setting",
    "1",
    "1 if an event that was read within the last day shows a setting of the connector or its"
    " converter that changes values. Also 1 for `foreign-key-cascades`: the schema changes show"
    " a foreign key by which the server makes changes that the binlog lacks.",
    "`lakesplice tables` says what the setting does. Correct it at the connector, then take a"
    " new snapshot.",
    Label("topic"),
    TABLE,
    Label("setting"),
)
CONNECTOR_AGE = age(
    "connector_event_age_seconds",
    "How long ago a connector last wrote a record to Kafka, including heartbeats. A connector is"
    " recognised by what its topics' names begin with. `heartbeats` shows whether it has a"
    " heartbeat topic.",
    "Look at the connector in Kafka Connect. Without heartbeats, it is also possible that"
    " nothing changes at the source.",
    *(Label("connector"), Label("heartbeats", ("yes", "no"))),
)
