"""Programs: what wires everything together, and what several of them share.

Offers the service, the command line, the library, Spark's format, bootstrap, verification, doctor
and demo, a folder each. No other folder may import it; only here unexpected errors are caught.
"""
