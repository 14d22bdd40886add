"""Coverage-guided fuzzing of what reads Parquet's metadata; see CONTRIBUTING.md."""
