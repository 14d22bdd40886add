"""The page that the service serves to people, and the same content as JSON for programs.

Offers `Board`, which holds what is shown of a running service, and `site`, the routes that show it.
It only reads: nothing here changes a table, and what can't be read gives an error page, not the end
of the service.
"""

from lakesplice.apps.service.page.board import Board
from lakesplice.apps.service.page.routes import site

__all__ = ["Board", "site"]
