"""Writes the new file: what each of its column chunks consists of, and the order of all parts.

Offers the order of writes, and copies of unchanged bytes. It must not know what changes, or decode
a page.
"""
