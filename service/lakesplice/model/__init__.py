"""Values: what a change, a position, an address and a table's schema are."""
