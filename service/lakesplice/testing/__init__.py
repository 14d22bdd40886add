"""Builders, oracles and real servers for tests: product code that users may import."""
