"""Pages of a column chunk: chooses the touched ones, decodes them, sets new values, encodes them.

Offers the plan of a chunk's pages and their decoding and encoding. It must not know other chunks or
the file around them.
"""
