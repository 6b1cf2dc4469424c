"""Secret values, in the forms in which they travel, and results as a model sees them."""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import quote

import pytest
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from aura_operator.agent.mcp.results import rendered
from aura_operator.agent.outcomes import finished
from aura_operator.agent.redaction import Redactor
from aura_operator.core.entries import Outcome

SECRET = 'p4ss"w0rd/with+é'

pytestmark = pytest.mark.behaviour(32)


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f"before {SECRET} after {SECRET}",
        json.dumps({"password": SECRET}),
        json.dumps({"password": SECRET}, ensure_ascii=False),
        json.dumps({"log": json.dumps({"password": SECRET})}),
        f"https://host/?p={quote(SECRET, safe='')}",
    ],
)
def test_a_secret_is_found_however_it_is_quoted(text: str) -> None:
    scrubbed = Redactor([SECRET]).scrub(text)

    assert "[redacted]" in scrubbed
    assert "p4ss" not in scrubbed and "w0rd" not in scrubbed


@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "user:"])
@pytest.mark.parametrize("after", ["", "!", "??"])
def test_a_secret_is_found_within_base64(before: str, after: str) -> None:
    secret = "s3cr3t-t0ken-value"
    encoded = base64.b64encode(f"{before}{secret}{after}".encode()).decode()

    assert "[redacted]" in Redactor([secret]).scrub(f"Basic {encoded}")


def test_of_two_secrets_that_begin_alike_no_end_is_left_over() -> None:
    assert Redactor(["token-abc", "token-abc-def"]).scrub("token-abc-def token-abc") == "[redacted] [redacted]"


def test_a_short_secret_hides_whole_words_only_and_a_tiny_one_nothing() -> None:
    redactor = Redactor(["prod", "1", ""])
    assert redactor.scrub("prod product 1 10 [prod]") == "[redacted] product 1 10 [[redacted]]"


@pytest.mark.parametrize("masked", ["sk-ab*****wxyz", "sk-ab...wxyz", "sk-abcd****", "****wxyz", "sk-a…yz"])
def test_a_masked_echo_is_hidden_too(masked: str) -> None:
    assert Redactor(["sk-abcdefghijklmnop-wxyz"]).scrub_error(f"bad key {masked}.") == "bad key [redacted]."


def test_ordinary_dots_and_stars_stay() -> None:
    text = "wait... 2 ** 3, file-*.log, and so on…"
    assert Redactor(["sk-abcdefghijklmnop"]).scrub_error(text) == text


def test_a_secret_that_straddles_the_cut_is_not_left_in_part() -> None:
    secret = "s3cr3t-t0ken-value"
    text = "x" * 190 + secret + "y" * 1000

    for limit_bytes in range(150, 230):
        outcome = finished(Outcome.OK, text, Redactor([secret]), limit_bytes)
        assert "s3" not in outcome.text
        assert len(outcome.text.encode()) <= limit_bytes
        assert outcome.size_bytes == 1208


def test_a_cut_leaves_whole_characters_and_tells_the_full_size() -> None:
    text = "ü" * 1000
    for limit_bytes in range(200, 210):
        outcome = finished(Outcome.OK, text, Redactor([]), limit_bytes)
        assert outcome.size_bytes == 2000
        assert len(outcome.text.encode()) <= limit_bytes
        assert "2000 bytes" in outcome.text and outcome.text.startswith("üü")


def test_what_fits_is_left_alone() -> None:
    outcome = finished(Outcome.OK, "ü" * 100, Redactor([]), 200)
    assert (outcome.text, outcome.size_bytes) == ("ü" * 100, 200)


def test_a_large_text_is_handled_in_a_moment() -> None:
    begun = time.monotonic()
    outcome = finished(Outcome.OK, "ab*c" * 12_500_000, Redactor(["s3cr3t-t0ken-value"]), 10_000)
    assert outcome.size_bytes == 50_000_000
    assert time.monotonic() - begun < 2.0


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (TextContent(text="plain"), "plain"),
        (
            ImageContent(data=base64.b64encode(b"x" * 100).decode(), mime_type="image/png"),
            "[image/png, 100 bytes: not shown, this agent reads text only]",
        ),
        (ResourceLink(uri="file:///a.log", name="a.log"), "[resource a.log: file:///a.log]"),
        (
            EmbeddedResource(resource=TextResourceContents(uri="file:///a.log", text="line")),
            "[resource file:///a.log]\nline",
        ),
        (
            EmbeddedResource(resource=BlobResourceContents(uri="file:///a.bin", blob="AAAA")),
            "[resource file:///a.bin, binary, 3 bytes: not shown]",
        ),
    ],
)
def test_every_kind_of_content_becomes_text(content: ContentBlock, text: str) -> None:
    assert rendered(CallToolResult(content=[content])) == text


def test_structured_content_is_shown_where_no_text_says_the_same() -> None:
    structured = {"pods": ["db-0"], "ö": 1}
    assert rendered(CallToolResult(content=[], structured_content=structured)) == '{"pods": ["db-0"], "ö": 1}'
    both = CallToolResult(content=[TextContent(text="one pod")], structured_content=structured)
    assert rendered(both) == "one pod"
