"""The new file: what each of its column chunks is made of, and how it is written.

Offers the order of writes, and copies of unchanged bytes. It must not know what changes, or decode
a page.
"""
