"""The service: a driver of a lake that reads changes from Kafka and keeps its tables."""

from lakesplice.apps.service.service import Service, run
from lakesplice.apps.service.status.service_status import ServiceStatus, TableStatus

__all__ = ["Service", "ServiceStatus", "TableStatus", "run"]
