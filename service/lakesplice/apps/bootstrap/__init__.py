"""`lakesplice bootstrap` and `rebuild`: tables of a source are read in chunks into shadows, which
their topics feed meanwhile, and become tables of the lake.
"""

from lakesplice.apps.bootstrap.run import TableOutcome, bootstrap
from lakesplice.apps.bootstrap.source_chunks import LoadBounds

__all__ = ["LoadBounds", "TableOutcome", "bootstrap"]
