"""The splice beside its peers: `python -m benchmarks.splice`."""
