"""Bytes to values and back, a folder per format; none knows another."""
