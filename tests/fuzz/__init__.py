"""Coverage-guided fuzzing of the code that reads Parquet's metadata; see CONTRIBUTING.md."""
