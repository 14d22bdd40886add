"""The protocol: the order of every write, and what each commit relies on."""
