"""The edge to Kafka: topics, offsets, records."""
