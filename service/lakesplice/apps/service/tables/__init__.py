"""The tables of a running driver: their names, their state, and what metrics report about them.

Offers `ServiceTables` and `ServiceTable`, which commit, park and rest. They must not know batches,
compactions, the topics' selection or the page.
"""

from lakesplice.apps.service.tables.read_ahead import TablesReadAhead
from lakesplice.apps.service.tables.service_table import ServiceTable
from lakesplice.apps.service.tables.tables import (
    AllTables,
    DriverTables,
    ServiceTables,
    initial_source,
)

__all__ = [
    "AllTables",
    "DriverTables",
    "ServiceTable",
    "ServiceTables",
    "TablesReadAhead",
    "initial_source",
]
