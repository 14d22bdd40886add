"""Makes whole column chunks of the new file: edited ones, rewritten ones, and new ones.

Offers the bytes of one chunk and its metadata. It must not know other columns, nor how the file is
put together.
"""
