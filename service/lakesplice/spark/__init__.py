"""The edge to Spark: moves data and decides nothing."""
