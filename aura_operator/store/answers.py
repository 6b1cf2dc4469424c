"""What an error answer of the API server means. Owns the classification; who reacts how is commit.py's and callers'.

Seen on 1.36: a JSON Patch whose test fails, or whose path is missing, is 422 with empty details; schema and CEL are 422
with causes; 1.6 MB is a 500 "request is too large", 3 MB a 413.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from aura_operator.errors import (
    AlreadyExistsError,
    ContentRejectedError,
    ForbiddenError,
    NotFoundError,
    PreconditionFailedError,
    StoreError,
    UnavailableError,
    WatchExpiredError,
)


def error_of(status: int, headers: Mapping[str, str], body: bytes, what: str) -> StoreError:
    """The error for an answer with `status` >= 400; `what` says what was tried, on which object."""
    answer = _parsed(body)
    message = (
        f"{what}: {answer.get('message') or body[:300].decode(errors='replace') or 'the answer has no body'} ({status})"
    )
    reason = answer.get("reason", "")
    match status:
        case 404:
            return NotFoundError(message)
        case 409 if reason == "AlreadyExists":
            return AlreadyExistsError(message)
        case 409:
            return PreconditionFailedError(message)
        case 410:
            return WatchExpiredError(message)
        case 401 | 403:
            return ForbiddenError(message)
        case 422:
            has_causes = bool((answer.get("details") or {}).get("causes"))
            return ContentRejectedError(message) if has_causes else PreconditionFailedError(message)
        case 400 | 413 | 415:
            return ContentRejectedError(message)
        case 500 if "request is too large" in message:
            return ContentRejectedError(message)
        case 429 | 500 | 502 | 503 | 504:
            return UnavailableError(message, retry_after=_retry_after(headers, answer))
        case _:
            return StoreError(message)


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        parsed = orjson.loads(body)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _retry_after(headers: Mapping[str, str], answer: dict[str, Any]) -> float | None:
    seconds = headers.get("Retry-After") or (answer.get("details") or {}).get("retryAfterSeconds")
    try:
        return float(seconds) if seconds else None
    except ValueError:
        return None
