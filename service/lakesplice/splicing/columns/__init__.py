"""A whole column chunk of the new file: edited, rewritten, or made from nothing."""
