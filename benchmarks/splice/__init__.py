"""The splice compared with its peers: `python -m benchmarks.splice`."""
