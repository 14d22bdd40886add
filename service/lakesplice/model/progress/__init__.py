"""How far a table has come with its source: chunks, columns and binlogs, as values.

Offers frozen classes that the manifest or a shadow's plan holds. It must not know what is decided
by them, nor the manifest itself.
"""
