"""`lakesplice doctor`: facts of everything that the service stands on, and their judgement.

`examine` returns the findings. `tracks.py` runs the steps, each bounded in time and none hiding
another; a module each gathers facts from the machine, the lake, Kafka and its records, and the
source's side (database, Connect, registry). What is right is decided in `planning/diagnosis/`.
"""

from lakesplice.apps.doctor.examination import Access, examine

__all__ = ["Access", "examine"]
