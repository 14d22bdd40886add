"""Faults provoked on the running demo: `python -m benchmarks.faults`.

`demo.py` runs `lakesplice demo --serve`, and `alerts.py` a Prometheus beside it. `table_faults.py`,
`topic_faults.py` and `service_faults.py` have the faults and their remedies by the runbook;
`disks.py`, `processes.py` and `shifted_clock.py` the means to make them; `measuring.py` measures
how long each takes to be told.
"""
