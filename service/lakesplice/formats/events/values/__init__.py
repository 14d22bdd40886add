"""Values: the input and output of decoding, and how a cell of each type is written.

Offers blocks of row images, reasons of dead letters, declared types and encodings. It must not know
JSON or any format.
"""
