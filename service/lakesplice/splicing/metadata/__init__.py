"""Keeps a new file's metadata true: what it says about values, schema, encodings and writers.

Offers bounds, encodings, schemas and writers' names, and which claims of a writer can't be trusted.
It must not know pages or where they are written.
"""
