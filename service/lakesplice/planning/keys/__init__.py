"""Decisions that depend only on a row's key: the keys that users name, the changes of erased keys,
and the dead letters that may belong to a key.
"""
