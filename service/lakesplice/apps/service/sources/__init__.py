"""Sources: which topics the query reads, from which offsets, and how far behind they are.

Offers the choice of topics, new topics, and the age of what connectors write. It must not read the
records of tables.
"""
