"""One table of the page or the API: from the driver's memory, or from the lake."""

from __future__ import annotations

from lakesplice.apps.service.page.answers import HistoryAnswer, TableDetailAnswer
from lakesplice.apps.service.page.history import VERSIONS_MAX, columns, versions
from lakesplice.apps.service.page.service_answers import RunningDriver, ServiceAnswers
from lakesplice.errors import RetryableError, TableNotFoundError, UsageError
from lakesplice.model.names import TableName


def table_detail(answers: ServiceAnswers, path: str) -> TableDetailAnswer:
    """Return a table of the driver, by its folder in the lake.

    `TableNotFoundError` if the driver has none there; `RetryableError` while no driver runs.
    """
    driving, name = _driving(answers), TableName.from_path(path)
    row = next((one for one in answers.overview().tables if one.table == str(name)), None)
    if row is None:
        raise TableNotFoundError("the driver has no such table", table=str(name))
    table = driving.table(str(name))
    schema = None if table is None else table.manifest.schema
    return TableDetailAnswer(
        table=row,
        topics=answers.topics(str(name)),
        schema_version=0 if schema is None else schema.version,
        columns=[] if schema is None else columns(schema),
    )


def history_of(answers: ServiceAnswers, path: str, limit: int, before: int | None) -> HistoryAnswer:
    """Return versions of a table; blocks on the lake. Raises the errors of `table_detail` and of
    the store.
    """
    if not 1 <= limit <= VERSIONS_MAX:
        raise UsageError(f"limit must be from 1 to {VERSIONS_MAX}", given=limit)
    driving, name = _driving(answers), TableName.from_path(path)
    if driving.table(str(name)) is None:
        raise TableNotFoundError("the driver has no such table", table=str(name))
    return versions(driving.driver.lake.within(name.path), limit, before)


def _driving(answers: ServiceAnswers) -> RunningDriver:
    if answers.driving is None:
        raise RetryableError("this service isn't the lake's driver now; try again later")
    return answers.driving
