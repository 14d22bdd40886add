"""Pages of a column chunk: which are decoded, new values laid over, encoded again.

Offers the plan of a chunk's pages and their decoding and encoding. It must not know other chunks or
the file around them.
"""
