"""Pages of a column chunk: which are decoded, new values laid over, encoded again."""
