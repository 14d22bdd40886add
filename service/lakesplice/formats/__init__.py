"""Bytes to values and back, a folder per format; none knows another.

Offers codecs: any bytes give a value or a named error. They must not know where bytes come from,
nor what is decided by the values.
"""
