"""`lakesplice demo`: real Kafka, a shop's changes, the service, and a comparison with the truth."""

from lakesplice.apps.demo.run import run

__all__ = ["run"]
