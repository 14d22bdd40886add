"""The new file: what each of its column chunks is made of, and how it is written."""
