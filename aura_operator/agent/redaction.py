"""Keeps secret values out of texts that leave the agent: what a tool returned, what a provider complained about.

Owns the replacing only; who knows which secrets, says so.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

REDACTED = "[redacted]"

_SHORT = 6  # characters: below this a value may be an ordinary word, so only whole words are replaced
_SHORTEST = 3  # and below this nothing is: replacing every "1" hides nothing and destroys the text
_MASK_EDGE = 2  # characters that a masked echo must share with the secret at an end


class Redactor:
    """Replaces secret values, in the forms in which they travel, by `[redacted]`.

    `longest` is the length of the longest such form: who cuts a text must scrub that much beyond the cut.
    """

    def __init__(self, values: Iterable[str]) -> None:
        secrets = {value.strip() for value in values} - {""}
        self._long = [secret for secret in secrets if len(secret) >= _SHORT]
        # Longest first: of two secrets, one may be the beginning of the other.
        self._forms = sorted({form for secret in self._long for form in _forms(secret)}, key=len, reverse=True)
        short = sorted(re.escape(secret) for secret in secrets if _SHORTEST <= len(secret) < _SHORT)
        self._short = re.compile(rf"(?<!\w)(?:{'|'.join(short)})(?!\w)") if short else None
        self.longest = max((len(form) for form in self._forms), default=_SHORT)

    def scrub(self, text: str) -> str:
        """The text without the secrets."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, REDACTED)
        return self._short.sub(REDACTED, text) if self._short is not None else text

    def scrub_error(self, text: str) -> str:
        """As `scrub`, and without masked echoes: providers answer a bad key with parts of it (`sk-12***89`)."""
        return _MASKED.sub(self._unmask, self.scrub(text))

    def _unmask(self, found: re.Match[str]) -> str:
        head, tail = found["head"], found["tail"]
        for secret in self._long:
            starts = len(head) >= _MASK_EDGE and secret.startswith(head)
            ends = len(tail) >= _MASK_EDGE and secret.endswith(tail)
            if starts or ends:
                return REDACTED
        return found[0]


_MASKED = re.compile(r"(?P<head>[\w\-+/=.]*?)(?:\*{2,}|\.{3,}|…|x{4,}|X{4,}|•{2,})(?P<tail>[\w\-+/=]*)")


def _forms(secret: str) -> Iterator[str]:
    """A value as it is, within JSON, within a URL, and in base64 at each of the three alignments."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield json.dumps(json.dumps(secret))[3:-3]
    yield quote(secret, safe="")
    raw = secret.encode("utf-8", "replace")
    for shift in range(3):
        # The first and last characters of a shifted encoding mix with the neighbours: only the middle is the secret's.
        encoded = base64.b64encode(b"\0" * shift + raw).decode()
        start = (0, 2, 3)[shift]
        end = len(encoded) - (0, 3, 2)[(shift + len(raw)) % 3]
        middle = encoded[start:end]
        if len(middle) >= _SHORT:
            yield middle
            yield middle.replace("+", "-").replace("/", "_")
