"""The service: a driver of a lake that reads changes from Kafka and keeps its tables.

Offers `Service` and `run`. Its rooms are the tables, the topics' selection (`sources`), batches,
upkeep, status and the page; the import contract `service-rooms` orders them. They must not decide
what a change does to a row: `lakesplice.planning` does.
"""

from lakesplice.apps.service.service import Service, run
from lakesplice.apps.service.status.service_status import ServiceStatus, TableStatus

__all__ = ["Service", "ServiceStatus", "TableStatus", "run"]
