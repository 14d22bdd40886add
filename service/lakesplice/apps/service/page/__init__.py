"""The page that the service serves to people, and the same as JSON to programs.

Offers `Board`, what is shown of a running service, and `site`, all that is served about it. It only
looks: nothing here changes a table, and what can't be read is an answer and not the service's end.
"""

from lakesplice.apps.service.page.board import Board
from lakesplice.apps.service.page.routes import site

__all__ = ["Board", "site"]
