"""Alerts about topics and what writes to them."""

from __future__ import annotations

from lakesplice.telemetry.alerts.limits import AlertLimits
from lakesplice.telemetry.alerts.rule import EACH_TABLE, Alert

# The alerts whose thresholds depend on no setting.
_FIXED = (
    Alert(
        "LakespliceTopicRests",
        "warning",
        'lakesplice_topic_state{state="resting"} == 1',
        "{{ $labels.topic }} isn't written to its table: each attempt fails, and is"
        " retried after a pause.",
        'lakesplice_topic_state{state="resting"} is 1',
        after=300,
    ),
    Alert(
        "LakespliceTopicRefused",
        "critical",
        'lakesplice_topic_state{state="refused"} == 1',
        "{{ $labels.topic }} matches kafka.topic_pattern but can't have a table.",
        'lakesplice_topic_state{state="refused"} is 1',
        after=60,
    ),
    Alert(
        "LakespliceConnectorChangesValues",
        "warning",
        'lakesplice_suspect_setting{setting!="foreign-key-cascades"} == 1',
        "A setting of the connector changes values of {{ $labels.table }}: {{ $labels.setting }}.",
        "lakesplice_suspect_setting is 1",
        after=60,
        why="A foreign key that cascades is no wrong setting: `lakesplice tables` notes it.",
    ),
    Alert(
        "LakespliceConnectorSilent",
        "critical",
        'lakesplice_connector_event_age_seconds{heartbeats="yes"} > 600',
        "The connector {{ $labels.connector }} has written nothing for {{ $value |"
        " humanizeDuration }}, not even a heartbeat.",
        "lakesplice_connector_event_age_seconds rises",
        after=300,
        why="Many heartbeats (heartbeat.interval.ms at the connector, some 10 s).",
    ),
    Alert(
        "LakespliceSourceSilent",
        "warning",
        'lakesplice_connector_event_age_seconds{heartbeats="no"} > 86400',
        "{{ $labels.connector }} has sent nothing for {{ $value | humanizeDuration }},"
        " and it has no heartbeats.",
        "lakesplice_connector_event_age_seconds rises",
        after=300,
        why="Without heartbeats a dead connector looks like a source in which nothing changes.",
    ),
    Alert(
        "LakespliceLagGrows",
        "warning",
        "lakesplice_kafka_consumer_lag_records > 100000\n"
        "and deriv(lakesplice_kafka_consumer_lag_records[30m]) > 0",
        "{{ $labels.table }} is {{ $value }} records behind, and falls further behind.",
        "lakesplice_kafka_consumer_lag_records rises",
        after=1800,
    ),
)


def topic_alerts(limits: AlertLimits) -> tuple[Alert, ...]:
    """Return the alerts about topics and what writes to them."""
    return (
        *_FIXED,
        Alert(
            "LakespliceTopicWithoutTable",
            "warning",
            f'lakesplice_topic_state{{state="waiting"}} == 1\n'
            f"and on ({EACH_TABLE}) lakesplice_kafka_consumer_lag_records > 0",
            "{{ $labels.topic }} has records but no table yet.",
            'lakesplice_topic_state{state="waiting"} stays 1',
            after=limits.silence_seconds_max,
            why="Three times trigger.",
        ),
    )
