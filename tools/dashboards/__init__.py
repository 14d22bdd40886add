"""Grafana's dashboards, made in code: `PYTHONPATH=tools:service python -m dashboards` writes them.

A module per dashboard says which panels it has; `queries.py` writes PromQL from the metrics of the
catalogue, `panels.py` and `board.py` make panels and whole dashboards of it with Grafana's own
library, and `files.py` says where their JSON goes.
"""
