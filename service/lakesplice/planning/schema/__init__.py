"""Schema: what a source's schema change means to the table that it feeds.

Offers whether a row image fits a table, the table's schema after it, and the reason to park where a
policy refuses the change. It must not know positions: `sources` and `intake` say when a change
came.
"""
