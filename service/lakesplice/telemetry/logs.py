"""Logs: one event per line, facts as fields, secrets masked, for people or for programs."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import Any, TextIO

import structlog

from lakesplice.errors import LakespliceError
from lakesplice.secrets import masked, masked_text

# These libraries log every request and every reconnection at `info`.
_TALKATIVE = ("py4j", "kafka", "urllib3", "asyncio", "uvicorn")
_SILENT_DEPTH = 4

log_context = structlog.contextvars.bound_contextvars
"""Give every line that the block logs these fields: `with log_context(batch=7): ...`.

Another thread has them if it runs in a copy of this one's context (`contextvars.copy_context`).
"""


def configure_logs(level: str, format: str, stream: TextIO | None = None) -> None:  # noqa: A002
    """Send our logs and those of libraries to `stream` (standard error), as `console` or `json`.

    May be called again; the last call counts.
    """
    out = stream or sys.stderr
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        error_facts,
    ]
    is_json = format == "json"
    final: list[structlog.typing.Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        # Tracebacks become text first, so that secrets in them are masked, too.
        structlog.processors.format_exc_info,
        mask_secrets,
        structlog.processors.JSONRenderer(default=str)
        if is_json
        else structlog.dev.ConsoleRenderer(colors=out.isatty()),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(_number(level)),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=final)
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(_number(level))
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.ERROR, _number(level)))


def error_facts(
    _logger: Any, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Add the attributes of our errors in `error=` as fields of the event, each under its own
    name.
    """
    error = event.get("error")
    if isinstance(error, LakespliceError):
        for name, value in error.facts.items():
            event.setdefault(name, value)
        event["error"] = error.message
        event["error_type"] = type(error).__name__
    elif isinstance(error, BaseException):
        event["error"] = str(error)
        event["error_type"] = type(error).__name__
    return event


def mask_secrets(
    _logger: Any, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Mask values under a secret's name at any depth, and passwords inside texts."""
    return {name: _safe(name, value, _SILENT_DEPTH) for name, value in event.items()}


def _safe(name: str, value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return masked(name, value)
    if isinstance(value, Mapping):
        inner = value.items() if depth else ()
        return {str(key): _safe(str(key), item, depth - 1) for key, item in inner}
    if isinstance(value, list | tuple | set | frozenset):
        return [_safe(name, item, depth - 1) for item in value] if depth else []
    if value is None or isinstance(value, bool | int | float):
        return value
    return masked(name, masked_text(str(value)))


def _number(level: str) -> int:
    return logging.getLevelNamesMapping()[level.upper()]
