"""The service's clients of its broker: topics, consumer group, dead letters, first records."""

from __future__ import annotations

from contextlib import ExitStack

from pyspark.sql import SparkSession

from lakesplice.apps.record_reading import broker_access
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.sources.group_offsets import GroupOffsets
from lakesplice.apps.service.tables import DriverTables
from lakesplice.config import KafkaSettings, Settings
from lakesplice.spark.kafka.admin import KafkaAdmin
from lakesplice.spark.kafka.consumer_group import ConsumerGroup
from lakesplice.spark.kafka.dead_letter_topic import DeadLetterTopic
from lakesplice.spark.kafka.first_records import FirstRecordReader
from lakesplice.spark.kafka.topics import TopicCatalogue


def topic_catalogue(session: SparkSession, kafka: KafkaSettings) -> TopicCatalogue:
    """Return the catalogue of the broker's topics, which uses one client."""
    return TopicCatalogue(KafkaAdmin.in_session(session, broker_access(kafka)))


def group_offsets(
    stack: ExitStack, driver: Driver, tables: DriverTables, session: SparkSession
) -> GroupOffsets | None:
    """Return the reporter of offsets to a consumer group; None if the settings name no group."""
    kafka = driver.settings.kafka
    if kafka.group_id is None:
        return None
    admin = KafkaAdmin.in_session(session, broker_access(kafka))
    stack.callback(admin.close)
    return GroupOffsets(driver, tables, ConsumerGroup(admin, kafka.group_id))


def dead_letter_topic(session: SparkSession, kafka: KafkaSettings) -> DeadLetterTopic | None:
    """Return the topic to which dead letters are also sent; None if the settings name none."""
    if kafka.dead_letter_topic is None:
        return None
    return DeadLetterTopic(session, broker_access(kafka), kafka.dead_letter_topic)


def first_record_reader(settings: Settings, session: SparkSession) -> FirstRecordReader:
    """Return the reader of first records, for topics whose names don't show their table."""
    return FirstRecordReader(session, broker_access(settings.kafka))
