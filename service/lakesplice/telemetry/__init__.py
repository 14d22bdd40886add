"""What a running service tells: logs, metrics, health."""
