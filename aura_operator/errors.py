"""The one tree of errors. Each says what happened, to which object, and what the user can do.

Owns the classes only: whoever raises one writes the sentence.
"""

from __future__ import annotations

__all__ = [
    "AlreadyExistsError",
    "AuraError",
    "ConfigurationError",
    "ConflictError",
    "ContentRejectedError",
    "DamagedJournalError",
    "FencedError",
    "ForbiddenError",
    "JournalError",
    "ModelError",
    "NewerJournalError",
    "NotFoundError",
    "OutcomeUnknownError",
    "PreconditionFailedError",
    "RefusedError",
    "StoreError",
    "ToolServerError",
    "UnavailableError",
    "WatchExpiredError",
]


class AuraError(Exception):
    """Anything this project raises on purpose.

    `reason` is a CamelCase word fit for a condition or an Event; the message is a sentence that names the
    object and the remedy.
    """

    reason = "Error"

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        if reason is not None:
            self.reason = reason


def first_cause(error: Exception) -> Exception:
    """The first error of a group that is no group itself."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


class ConfigurationError(AuraError):
    """A flag, an environment variable, an agent or a task says something that can't be done."""

    reason = "BadConfiguration"


class JournalError(AuraError):
    """A journal can't be read. Its two kinds differ in what follows: see below."""

    reason = "JournalUnreadable"


class DamagedJournalError(JournalError):
    """A broken chain, a missing segment, a line that nobody wrote, or entries that don't fit together: no version can
    read it, so the task fails."""


class NewerJournalError(JournalError):
    """It was written by a newer version: this one leaves it alone, and a worker of that version goes on."""

    reason = "NewerJournal"


class UnreadableObjectError(AuraError):
    """An object says something that this version doesn't know, or lacks what it must have: it is left alone."""

    reason = "UnreadableObject"


class StoreError(AuraError):
    """A request to the Kubernetes API did not do what was asked."""

    reason = "StoreError"


class NotFoundError(StoreError):
    """The object isn't there (404)."""

    reason = "NotFound"


class AlreadyExistsError(StoreError):
    """An object of that name is there already (409 AlreadyExists)."""

    reason = "AlreadyExists"


class PreconditionFailedError(StoreError):
    """A JSON Patch `test` did not hold (422 without causes): read, then decide."""

    reason = "PreconditionFailed"


class ConflictError(StoreError):
    """A conditional write did not land, and its conditions don't hold any more: somebody else was there first."""

    reason = "Conflict"


class ContentRejectedError(StoreError):
    """The content itself is at fault (422 with causes, 413, too large): sending it again can't help."""

    reason = "ContentRejected"


class ForbiddenError(StoreError):
    """401 or 403: rights are missing, perhaps only for now."""

    reason = "Forbidden"


class RefusedError(AuraError):
    """What was refused (401, 403) went on being refused for as long as anybody would wait: the right to it is missing.

    Not a StoreError, so that whoever waits out those lets it through.
    """

    reason = "Refused"


class UnavailableError(StoreError):
    """429 or another 5xx: the request was not carried out; try again later.

    `retry_after` is in seconds, None if the server named none.
    """

    reason = "Unavailable"

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class OutcomeUnknownError(StoreError):
    """Timeout or lost connection: the request may or may not have been carried out; read back."""

    reason = "OutcomeUnknown"


class WatchExpiredError(StoreError):
    """410: the resource version is gone; list anew."""

    reason = "WatchExpired"


class FencedError(AuraError):
    """This process no longer owns what it is about to write: it must stop, not repair."""

    reason = "Fenced"


class ModelError(AuraError):
    """A model call failed. `retriable` says whether the same call may succeed later, `retry_after` when (seconds)."""

    reason = "ModelFailed"

    def __init__(
        self, message: str, *, reason: str | None = None, retriable: bool, retry_after: float | None = None
    ) -> None:
        super().__init__(message, reason=reason)
        self.retriable = retriable
        self.retry_after = retry_after


class ToolServerError(AuraError):
    """An MCP server can't be reached or doesn't speak the protocol."""

    reason = "ToolServerUnreachable"
