"""What went wrong with a model request, in this project's words: the reason, the remedy, and whether to try again.

Owns the translation from pydantic-ai's errors. No text that leaves here holds a secret.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic_ai import exceptions as theirs
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.models.function import FunctionModel

from aura_operator.agent.models.settings import ModelSettings
from aura_operator.agent.redaction import Redactor
from aura_operator.errors import ModelError

_LONGEST_DETAIL = 500  # characters of a provider's own words


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    reason: str
    retriable: bool
    what: str
    remedy: str


# In this order: the first class that fits decides, so a subclass stands before its base.
_VERDICTS: tuple[tuple[type[BaseException], _Verdict], ...] = (
    (
        theirs.ModelQuotaExceededError,
        _Verdict(
            reason="ModelQuotaExceeded",
            retriable=False,
            what="its account has no quota or credit left",
            remedy="raise the account's limit with the provider, or name another key in apiKeySecretRef",
        ),
    ),
    (
        theirs.ModelRateLimitError,
        _Verdict(
            reason="ModelRateLimited",
            retriable=True,
            what="it limits the rate of requests",
            remedy="it is tried again; if this goes on, ask the provider for a higher rate or run fewer tasks at once",
        ),
    ),
    (
        theirs.ModelAuthenticationError,
        _Verdict(
            reason="ModelUnauthorized",
            retriable=False,
            what="it refuses the key",
            remedy="check the Secret that apiKeySecretRef names, and that the key may use this model",
        ),
    ),
    (
        theirs.ModelNotFoundError,
        _Verdict(
            reason="BadModelName",
            retriable=False,
            what="there is no such model, or nothing is served at that URL",
            remedy="check spec.model.name and spec.model.baseURL of the agent (OpenAI-compatible URLs end in /v1)",
        ),
    ),
    (
        theirs.ModelContextWindowExceededError,
        _Verdict(
            reason="ModelContextTooLong",
            retriable=False,
            what="the conversation is longer than it can read",
            remedy="lower limits.toolResultBytes or limits.turns of the agent, or take a model with a larger window",
        ),
    ),
    (
        theirs.ModelRequestRejectedError,
        _Verdict(
            reason="ModelRequestRejected",
            retriable=False,
            what="it refuses the request",
            remedy="check spec.model.settings of the agent and that the model can call tools",
        ),
    ),
    (
        theirs.ModelUnavailableError,
        _Verdict(
            reason="ModelUnavailable", retriable=True, what="it can't serve requests now", remedy="it is tried again"
        ),
    ),
    (
        theirs.ModelServerError,
        _Verdict(reason="ModelUnavailable", retriable=True, what="it failed inside", remedy="it is tried again"),
    ),
    (
        theirs.ModelTimeoutError,
        _Verdict(
            reason="ModelTimeout",
            retriable=True,
            what="it did not answer in time",
            remedy="it is tried again; if this goes on, raise spec.model.timeoutSeconds",
        ),
    ),
    (
        theirs.ModelConnectionError,
        _Verdict(
            reason="ModelUnreachable",
            retriable=True,
            what="the connection failed",
            remedy="it is tried again; if this goes on, check spec.model.baseURL and that the worker may reach it",
        ),
    ),
    (
        theirs.ModelRequestTimeout,
        _Verdict(
            reason="ModelTimeout",
            retriable=True,
            what="it did not answer in time",
            remedy="it is tried again; if this goes on, raise spec.model.timeoutSeconds",
        ),
    ),
    (
        theirs.ContentFilterError,
        _Verdict(
            reason="ModelRefused",
            retriable=False,
            what="its content filter stopped the response",
            remedy="change the input or the system prompt",
        ),
    ),
    (
        theirs.UserError,
        _Verdict(
            reason="BadModelSettings",
            retriable=False,
            what="the request can't be built",
            remedy="check spec.model of the agent",
        ),
    ),
)
_TIMEOUT = next(verdict for kind, verdict in _VERDICTS if kind is theirs.ModelTimeoutError)
_UNEXPECTED = _Verdict(
    reason="ModelFailed",
    retriable=True,
    what="the request failed",
    remedy="it is tried again within spec.model.retries",
)


def translated(error: Exception, settings: ModelSettings, redactor: Redactor) -> ModelError:
    """The ModelError for whatever a provider's SDK or pydantic-ai raised."""
    verdict = _verdict(error)
    detail = _detail(error)
    if isinstance(error, TimeoutError) and not detail:
        detail = f"no complete response within {settings.timeout_seconds:g} s"
    said = f" ({redactor.scrub_error(detail[:_LONGEST_DETAIL])})" if detail else ""
    return ModelError(
        f"{settings.described}: {verdict.what}{said}; {verdict.remedy}",
        reason=verdict.reason,
        retriable=verdict.retriable,
        retry_after=getattr(error, "retry_after", None) if verdict.retriable else None,
    )


def incomplete(response: ModelResponse, model: Model, settings: ModelSettings) -> ModelError | None:
    """What is wrong with a response that arrived without an error, or None.

    A stream that was cut looks like a success, `finish_reason` included, which pydantic-ai then makes up. A response is
    complete when the provider itself said why it stopped.
    """
    finish = (response.provider_details or {}).get("finish_reason")
    if finish is None and not isinstance(model, FunctionModel):
        return ModelError(
            f"{settings.described}: the response broke off in the middle; it is tried again",
            reason="ModelReplyCut",
            retriable=True,
        )
    if response.finish_reason == "content_filter" and not response.parts:
        return ModelError(
            f"{settings.described}: its content filter stopped the response; change the input or the system prompt",
            reason="ModelRefused",
            retriable=False,
        )
    if response.finish_reason == "error":
        return ModelError(
            f"{settings.described}: it reported an error instead of a response; it is tried again",
            reason="ModelFailed",
            retriable=True,
        )
    return None


def _verdict(error: Exception) -> _Verdict:
    if isinstance(error, TimeoutError):
        return _TIMEOUT
    by_class = next((verdict for kind, verdict in _VERDICTS if isinstance(error, kind)), None)
    if by_class is not None:
        return by_class
    if isinstance(error, theirs.ModelHTTPError):
        return _by_status(error.status_code)
    return _UNEXPECTED


def _by_status(status: int) -> _Verdict:
    """For errors that pydantic-ai puts into no category of its own."""
    kinds: tuple[tuple[Callable[[int], bool], type[BaseException]], ...] = (
        (lambda code: code in (408, 425, 429), theirs.ModelRateLimitError),
        (lambda code: code in (401, 403), theirs.ModelAuthenticationError),
        (lambda code: code == 404, theirs.ModelNotFoundError),
        (lambda code: 400 <= code < 500, theirs.ModelRequestRejectedError),
    )
    wanted = next((kind for fits, kind in kinds if fits(status)), theirs.ModelServerError)
    return next(verdict for kind, verdict in _VERDICTS if kind is wanted)


def _detail(error: Exception) -> str:
    """The provider's own words, on one line."""
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    if isinstance(error, theirs.ModelHTTPError):
        return " ".join(f"HTTP {error.status_code}: {message or body or error.message}".split())
    # "Connection error." is all that an SDK says; what it was about stands in the causes.
    words = [str(error)]
    cause = error.__cause__ or error.__context__
    while cause is not None:
        words.append(str(cause))
        cause = cause.__cause__ or cause.__context__
    distinct = dict.fromkeys(" ".join(word.split()) for word in words)
    return ": ".join(word for word in distinct if word)
