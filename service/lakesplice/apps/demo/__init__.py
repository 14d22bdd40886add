"""`lakesplice demo`: real Kafka, a shop's changes, the service, and a comparison with the truth.

Offers `run.py`, which starts and stops all of it in a folder of its own, and `serving.py`, which
keeps it running with a real database and connector. It must not know how the service works inside:
it uses it as people do.
"""

from lakesplice.apps.demo.run import run
from lakesplice.apps.demo.serving import serve

__all__ = ["run", "serve"]
