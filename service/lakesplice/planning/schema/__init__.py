"""Schema: what a source's schema change does to the table that it feeds.

Offers whether a row image fits a table, the table's next schema, and the reason to park if a policy
refuses the change. It must not know positions: `sources` and `intake` say when a change was made.
"""
