"""What the fault proxy can do to a request, and to which. Owns the vocabulary of faults; carries none of them out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRequest:
    """One request as the proxy received it. `path` has no query; `body` is what arrived, byte for byte."""

    number: int
    method: str
    path: str
    query: dict[str, str]
    content_type: str
    body: bytes

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") in ("true", "1")

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Waits before passing the request on. It is passed on even if the client has given up meanwhile: it lands late."""

    seconds: float


@dataclass(frozen=True, slots=True)
class CutBefore:
    """Cuts the connection; the request never reaches the API server."""


@dataclass(frozen=True, slots=True)
class SwallowAnswer:
    """Lets the request through and cuts the connection in place of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldAnswer:
    """Lets the request through and keeps the answer: for `seconds`, or until the client gives up."""

    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Answers in place of the API server, which never sees the request."""

    status: int
    retry_after_seconds: int | None = None
    message: str = "answered by the fault proxy"


@dataclass(frozen=True, slots=True, kw_only=True)
class CutWatch:
    """Cuts a watch after it has passed on `after_events` events. Has no effect on other requests."""

    after_events: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireWatch:
    """Ends a watch in good order with an ERROR event of code 410, as a server does that forgot the past."""

    after_events: int = 0


Action = Delay | CutBefore | SwallowAnswer | HoldAnswer | Answer | CutWatch | ExpireWatch
Predicate = Callable[[SeenRequest], bool]


def matching(*, method: str | None = None, path: str | None = None, body: str | bytes | None = None) -> Predicate:
    """Says yes to a request with that method, with a match of the pattern `path` in its path and `body` in its body."""
    pattern = re.compile(path) if path is not None else None
    part = body.encode() if isinstance(body, str) else body

    def predicate(request: SeenRequest) -> bool:
        return (
            (method is None or request.method == method)
            and (pattern is None or pattern.search(request.path) is not None)
            and (part is None or part in request.body)
        )

    return predicate


@dataclass(slots=True, kw_only=True)
class Rule:
    """An action for the requests that match: for the `nth` of them (from 1), or for all."""

    matches: Predicate
    action: Action
    nth: int | None = None
    matched: int = field(default=0, init=False)

    def action_for(self, request: SeenRequest) -> Action | None:
        if not self.matches(request):
            return None
        self.matched += 1
        return self.action if self.nth in (None, self.matched) else None


@dataclass(slots=True, kw_only=True)
class Exchange:
    """A request and what became of it.

    `status` is the API server's answer: None if it was not asked, or has not answered. `delivered` says that an answer
    went to the client, `done` that nothing more happens.
    """

    request: SeenRequest
    action: Action | None = None
    status: int | None = None
    delivered: bool = False
    done: bool = False
