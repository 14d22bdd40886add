"""Values: what a change, a position, an address and a table's schema are.

Offers frozen classes without effects, and their names and bounds; `progress` has those of a table's
way with its source. It must not know where values come from: no format, no decision, no effect.
"""
