"""Builders, oracles and real servers for tests: product code that users may import.

Offers doubles of the ports, a store that fails on request, a simulated driver, a shop's changes,
and brokers and databases as processes. It must not know `apps`.
"""
