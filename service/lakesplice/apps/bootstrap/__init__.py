"""`lakesplice bootstrap` and `rebuild`: read a source's tables in chunks into shadows, while their
topics also feed the shadows. Then each shadow becomes the table of the lake.
"""

from lakesplice.apps.bootstrap.fill_request import FillRequest, TableOutcome
from lakesplice.apps.bootstrap.fill_tools import Database
from lakesplice.apps.bootstrap.run import bootstrap
from lakesplice.apps.bootstrap.source_chunks import LoadBounds

__all__ = ["Database", "FillRequest", "LoadBounds", "TableOutcome", "bootstrap"]
