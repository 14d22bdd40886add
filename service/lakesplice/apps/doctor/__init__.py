"""`lakesplice doctor`: gathers facts about everything that the service needs, and has them judged.

`examine` returns the findings. `step_runner.py` runs the steps; each has a time limit, and a
failing step hides no other. One module each gathers facts about the machine, the lake, Kafka and
its records, and the source's side (database, Connect, registry). `planning/diagnosis/` decides what
is right.
"""

from lakesplice.apps.doctor.examination import Access, examine

__all__ = ["Access", "examine"]
