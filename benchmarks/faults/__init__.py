"""Faults provoked on the running demo: `python -m benchmarks.faults`.

`demo.py` runs `lakesplice demo --serve`, `alerts.py` a Prometheus beside it, `catalogue.py` has the
faults and their remedies by the runbook, and `measuring.py` how long each takes to be told.
"""
