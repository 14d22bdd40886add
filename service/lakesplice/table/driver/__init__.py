"""Driver: which process may write to a lake, what it says of itself, and what others ask of it.

Offers generations, the status document and requests. It must not know what a table contains.
"""
