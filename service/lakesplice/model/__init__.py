"""Values: changes, positions, row addresses, table schemas, manifests.

Offers frozen classes without effects, and their names and bounds; `progress` has those of a table's
way with its source. It must not know where values come from: no format, no decision, no effect.
"""
