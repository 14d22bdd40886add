"""Values: what a change, a position, an address and a table's schema are.

Offers frozen classes without effects, and the names and bounds that go with them. It must not know
where values come from: no format, no decision, no effect.
"""
