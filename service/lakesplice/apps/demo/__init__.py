"""`lakesplice demo`: real Kafka, a shop's changes, the service, and a comparison with the truth.

Offers `run.py`, which starts and stops all of it in a folder of its own. It must not know how the
service works inside: it uses it as people do.
"""

from lakesplice.apps.demo.run import run

__all__ = ["run"]
