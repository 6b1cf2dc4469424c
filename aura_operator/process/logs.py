"""Sets logging up for a process: JSON lines on stderr, or readable ones on a terminal. Called once."""

from __future__ import annotations

import logging
import sys

import structlog

LEVELS = ("debug", "info", "warning", "error")


def configure(level: str, *, json_lines: bool) -> None:
    """All of this project's and its libraries' records from `level` (one of LEVELS) on."""
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    last: list[structlog.types.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if json_lines
        else [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    )
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=_foreign(last)))
    logging.basicConfig(handlers=[handler], level=max(number, logging.WARNING), force=True)


def _foreign(last: list[structlog.types.Processor]) -> list[structlog.types.Processor]:
    return [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last]
