"""A whole column chunk of the new file: edited, rewritten, or made from nothing.

Offers the bytes of one chunk and its metadata. It must not know other columns, nor how the file is
put together.
"""
