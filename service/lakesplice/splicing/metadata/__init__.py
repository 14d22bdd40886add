"""What a new file says about its values and its making, kept true.

Offers bounds, encodings, schemas and writers' names, and which claims of a writer can't be trusted.
It must not know pages or where they are written.
"""
