"""What a running service reports: logs, metrics, health."""
