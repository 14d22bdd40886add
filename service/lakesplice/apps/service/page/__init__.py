"""The page that the service serves to people, and the same content as JSON for programs.

Offers `ServiceAnswers`, which holds what is shown of a running service, and `site`, the routes that
show it. It only reads: nothing here changes a table. If something can't be read, the answer is an
error page, and the service goes on.
"""

from lakesplice.apps.service.page.routes import site
from lakesplice.apps.service.page.service_answers import ServiceAnswers

__all__ = ["ServiceAnswers", "site"]
