"""What is decided by a row's key alone: the keys that people name, the changes of erased keys, and
the dead letters that may be of a key.
"""
