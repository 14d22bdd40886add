"""`lakesplice bootstrap` and `rebuild`: tables of a source are read in chunks into shadows, which
their topics feed meanwhile, and become tables of the lake.
"""

from lakesplice.apps.bootstrap.fill_tools import Database
from lakesplice.apps.bootstrap.run import bootstrap
from lakesplice.apps.bootstrap.source_chunks import LoadBounds
from lakesplice.apps.bootstrap.wishes import TableOutcome, Wishes

__all__ = ["Database", "LoadBounds", "TableOutcome", "Wishes", "bootstrap"]
