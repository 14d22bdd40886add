"""Driver: which process may write to a lake, its status document, and commands' requests to it.

Offers generations, the status document and requests. It must not know what a table contains.
"""
