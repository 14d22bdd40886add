"""The service for hours beside a fleet of tables, with troubles on the way: `python -m
benchmarks.soak --hours N`.

`fleet.py` makes the changes, `incidents.py` the troubles, `samples.py` looks at the service while
it works, and `report.py` judges whether anything grew, and draws it.
"""
