"""What a running service reports: logs, metrics, traces, alerts, health.

Offers the catalogue of metrics, their registry and page, the alert rules, and the web server. It
must not know what names and numbers are about: no table, no Spark, no Kafka, no store.
"""
