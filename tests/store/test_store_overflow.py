"""What doesn't fit into a status, on every Store: written once by whoever, read back, never taken for what it isn't."""

from __future__ import annotations

import asyncio
import base64
import random
from dataclasses import replace

import pytest

from aura_operator.clock import SystemClock
from aura_operator.core.codec import SCHEMA
from aura_operator.core.journal import GENESIS, PREVIOUS_SEGMENTS, Segment, head_of
from aura_operator.core.transcript import Stored
from aura_operator.errors import ContentRejectedError, JournalError, NewerJournalError, NotFoundError
from aura_operator.store.journal_reads import read_journal
from aura_operator.store.overflow import (
    create_retrying,
    ensure,
    payload_object,
    read_secret,
    read_segment,
    read_stored,
    secret_object,
    segment_object,
)
from aura_operator.store.resources import CHECKPOINTS, SECRETS, Manifest, Ref, Resource, owned_by
from aura_operator.store.task_fields import JournalView
from aura_operator.store.view import TaskView
from aura_operator.testing.faulty import Call, FaultyStore
from aura_operator.testing.memory import MemoryStore
from aura_operator.testing.store_checks_writes import Ground

SEGMENTS = 130  # two full rounds of names, and a rest
TEXTS = ["", "short", 'quotes " and \\ and \n lines', "ü€😀" * 50, "log line 17 of pod db-0: ok\n" * 5000]


async def owner(ground: Ground) -> Manifest:
    return (await ground.task()).manifest


def ref_of(resource: Resource, manifest: Manifest) -> Ref:
    metadata = manifest["metadata"]
    return Ref(resource=resource, namespace=metadata["namespace"], name=metadata["name"])


@pytest.mark.behaviour(11)
@pytest.mark.parametrize("text", TEXTS, ids=["empty", "short", "escapes", "unicode", "long"])
async def test_a_payload_is_written_once_by_whoever_and_read_back(ground: Ground, text: str) -> None:
    task = await owner(ground)
    stored, manifest = payload_object(task, text)
    again, same = payload_object(task, text)
    assert (stored, manifest) == (again, same), "whoever writes it writes the same"
    await create_retrying(ground.store, CHECKPOINTS, manifest, ground.clock)
    await create_retrying(ground.store, CHECKPOINTS, manifest, ground.clock)
    assert await read_stored(ground.store, ground.namespace, stored, ground.clock) == text


async def test_a_secret_is_written_once_and_read_back(ground: Ground) -> None:
    secret, manifest = secret_object(await owner(ground), "hunter2 €", "nonce")
    assert "hunter2" not in secret.name
    await create_retrying(ground.store, SECRETS, manifest, ground.clock)
    await create_retrying(ground.store, SECRETS, manifest, ground.clock)
    assert await read_secret(ground.store, ground.namespace, secret, ground.clock) == "hunter2 €"


async def test_somebody_elses_object_of_that_name_is_refused_not_used(ground: Ground) -> None:
    task = await owner(ground)
    _, manifest = payload_object(task, "ours")
    # Of an owner that is there: the server collects what belongs to nobody.
    foreign_owner = owned_by(manifest, await owner(ground))
    for foreign in (foreign_owner, manifest | {"spec": manifest["spec"] | {"data": "theirs"}}):
        created = await ground.user_store.create(CHECKPOINTS, foreign)
        with pytest.raises(ContentRejectedError, match=manifest["metadata"]["name"]):
            await create_retrying(ground.store, CHECKPOINTS, manifest, ground.clock)
        ref = ref_of(CHECKPOINTS, manifest)
        assert (await ground.user_store.get(ref))["spec"] == foreign["spec"]
        await ground.user_store.delete(ref, uid=created["metadata"]["uid"])


async def test_an_object_that_goes_while_it_is_looked_at_is_made_anew() -> None:
    """A name taken by what belonged to an earlier task, and collected between the refusal and the look."""
    clock = SystemClock()
    memory = MemoryStore(clock)
    store = FaultyStore(memory, clock)
    ground = Ground(store=store, user_store=memory, clock=clock, namespace="test")
    _, manifest = payload_object(await owner(ground), "ours")
    earlier = await memory.create(CHECKPOINTS, owned_by(manifest, await owner(ground)))

    async def collect(call: Call) -> None:
        if call.method == "get":
            await memory.delete(ref_of(CHECKPOINTS, manifest), uid=earlier["metadata"]["uid"])

    store.before = collect
    await create_retrying(store, CHECKPOINTS, manifest, clock)
    found = await memory.get(ref_of(CHECKPOINTS, manifest))
    assert found["metadata"]["ownerReferences"] == manifest["metadata"]["ownerReferences"]


async def test_somebody_elses_secret_without_any_content_is_refused_too(ground: Ground) -> None:
    secret, manifest = secret_object(await owner(ground), "ours", "nonce")
    foreign = {name: value for name, value in manifest.items() if name != "data"}
    await ground.user_store.create(SECRETS, foreign)
    with pytest.raises(ContentRejectedError, match="another owner or content"):
        await create_retrying(ground.store, SECRETS, manifest, ground.clock)
    with pytest.raises(JournalError, match="changed from outside"):
        await read_secret(ground.store, ground.namespace, secret, ground.clock)


async def test_it_goes_with_its_task(ground: Ground) -> None:
    task = await ground.task()
    _, manifest = payload_object(task.manifest, "ours")
    await ensure(ground.user_store, CHECKPOINTS, manifest)
    await ground.user_store.delete(task.ref, uid=task.uid)
    async with asyncio.timeout(30):
        while await exists(ground, ref_of(CHECKPOINTS, manifest)):
            await ground.clock.sleep(0.05)  # the server collects in its own time


async def exists(ground: Ground, ref: Ref) -> bool:
    try:
        await ground.user_store.get(ref)
    except NotFoundError:
        return False
    return True


@pytest.mark.parametrize("damage", ["not base64", "not gzip", "cut", "other text"])
async def test_a_damaged_payload_is_a_journal_error(ground: Ground, damage: str) -> None:
    task = await owner(ground)
    text = "log line\n" * 1000
    stored, manifest = payload_object(task, text)
    whole: str = manifest["spec"]["data"]
    _, other = payload_object(task, "LOG line\n" * 1000)
    data = {
        "not base64": "!" + whole[1:],
        "not gzip": base64.b64encode(b"plain").decode(),
        "cut": base64.b64encode(base64.b64decode(whole)[:-20]).decode(),
        "other text": other["spec"]["data"],
    }[damage]
    damaged = manifest | {"spec": manifest["spec"] | {"data": data}}
    await ground.user_store.create(CHECKPOINTS, damaged)
    with pytest.raises(JournalError, match=f"{stored.name}.*changed from outside"):
        await read_stored(ground.store, ground.namespace, stored, ground.clock)


async def test_a_missing_payload_is_a_journal_error(ground: Ground) -> None:
    stored = Stored(name="not-there", sha256="0" * 64, size_bytes=1)
    with pytest.raises(JournalError, match=r"not-there.*is gone"):
        await read_stored(ground.store, ground.namespace, stored, ground.clock)


def test_what_can_t_be_kept_is_refused_before_it_is_sent() -> None:
    task = {
        "apiVersion": "aura.mezmo.com/v1alpha1",
        "kind": "AuraTask",
        "metadata": {"name": "t", "namespace": "n", "uid": "12345678-9"},
    }
    noise = "".join(random.Random(7).choices("abcdefghijklmnopqrstuvwxyz0123456789+/", k=400_000))
    with pytest.raises(ContentRejectedError, match="AuraTask n/t is too large to be kept"):
        payload_object(task, noise)


# Journals


class Sealed:
    """A journal of many small segments, as a writer would have left it, and one line in the status."""

    def __init__(self, task: TaskView, count: int) -> None:
        self.segments: list[tuple[Segment, Manifest]] = []
        names: list[str] = []
        head, position = GENESIS, 0
        for number in range(count):
            lines = tuple(f'{{"k":"x","n":{number},"i":{index}}}' for index in range(2))
            after = head_of(lines, head)
            segment = Segment(
                first=position,
                next=position + len(lines),
                head_before=head,
                head=after,
                lines=lines,
                schema=SCHEMA,
                previous=tuple(names[-PREVIOUS_SEGMENTS:]),
            )
            manifest = segment_object(task.manifest, segment)
            names.append(manifest["metadata"]["name"])
            self.segments.append((segment, manifest))
            head, position = after, position + len(lines)
        inline = '{"k":"last"}'
        journal = JournalView(
            schema=SCHEMA,
            next=position + 1,
            head=head_of([inline], head),
            entries=(inline,),
            sealed=names[-1] if names else None,
            sealed_next=position,
        )
        self.task = replace(task, journal=journal)

    async def write(self, ground: Ground, *, without: int | None = None) -> None:
        for number, (_, manifest) in enumerate(self.segments):
            if number != without:
                await ground.user_store.create(CHECKPOINTS, manifest)


@pytest.mark.behaviour(30)
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, SEGMENTS])
async def test_a_long_chain_of_segments_is_read_back_in_order(ground: Ground, count: int) -> None:
    sealed = Sealed(await ground.task(), count)
    await sealed.write(ground)
    segments, inline = await read_journal(ground.store, sealed.task, ground.clock)
    assert [part.segment for part in segments] == [segment for segment, _ in sealed.segments]
    assert [part.name for part in segments] == [manifest["metadata"]["name"] for _, manifest in sealed.segments]
    assert inline == ('{"k":"last"}',)


@pytest.mark.parametrize("missing", [0, 5, 66, SEGMENTS - 1])
async def test_a_missing_segment_is_a_journal_error(ground: Ground, missing: int) -> None:
    sealed = Sealed(await ground.task(), SEGMENTS)
    await sealed.write(ground, without=missing)
    name = sealed.segments[missing][1]["metadata"]["name"]
    with pytest.raises(JournalError, match=f"{name}.*is gone"):
        await read_journal(ground.store, sealed.task, ground.clock)


@pytest.mark.parametrize("what", ["line", "order", "place", "names", "type"])
async def test_a_changed_segment_is_a_journal_error(ground: Ground, what: str) -> None:
    sealed = Sealed(await ground.task(), 70)
    await sealed.write(ground, without=66)
    segment, manifest = sealed.segments[66]
    changed = {
        "line": replace(segment, lines=(segment.lines[0], '{"k":"forged"}')),
        "order": replace(segment, lines=segment.lines[::-1]),
        "place": replace(segment, first=segment.first + 1),
        "names": replace(segment, previous=(sealed.segments[68][1]["metadata"]["name"],)),
        "type": segment,
    }[what]
    # Under the name of the right one: whoever may create checkpoints could do that once the right one is gone.
    forged = segment_object(sealed.task.manifest, changed)
    forged = forged | {"metadata": manifest["metadata"]}
    if what == "type":
        spec = {key: value for key, value in forged["spec"].items() if key != "journal"}
        forged = forged | {"spec": spec | {"type": "Payload"}}
    await ground.user_store.create(CHECKPOINTS, forged)
    if what == "names":
        # Only the last segment's names are followed while they reach; so it is read as the last one itself.
        assert sealed.task.journal is not None
        last = replace(sealed.task.journal, sealed=manifest["metadata"]["name"])
        sealed.task = replace(sealed.task, journal=last)
    with pytest.raises(JournalError):
        await read_journal(ground.store, sealed.task, ground.clock)


async def test_a_status_that_says_more_entries_than_there_are_is_a_journal_error(ground: Ground) -> None:
    sealed = Sealed(await ground.task(), 1)
    await sealed.write(ground)
    assert sealed.task.journal is not None
    for journal in (
        replace(sealed.task.journal, next=sealed.task.journal.next + 1),
        replace(sealed.task.journal, entries=()),
        replace(sealed.task.journal, entries=("forged",)),
        replace(sealed.task.journal, head="0" * 64),
    ):
        with pytest.raises(JournalError):
            await read_journal(ground.store, replace(sealed.task, journal=journal), ground.clock)


@pytest.mark.behaviour(14)
async def test_a_newer_journal_is_left_alone(ground: Ground) -> None:
    sealed = Sealed(await ground.task(), 0)
    assert sealed.task.journal is not None
    newer = replace(sealed.task, journal=replace(sealed.task.journal, schema=SCHEMA + 1))
    with pytest.raises(NewerJournalError):
        await read_journal(ground.store, newer, ground.clock)
    assert await read_journal(ground.store, replace(newer, journal=None), ground.clock) == ([], ())


async def test_a_newer_segment_is_left_alone_too(ground: Ground) -> None:
    """The number of a segment is read back: it says what the entries in it need, whatever the status says."""
    task = await ground.claimed()
    line = '{"k":"from the future"}'
    segment = Segment(
        first=0, next=1, head_before=GENESIS, head=head_of([line]), lines=(line,), schema=SCHEMA + 1, previous=()
    )
    manifest = segment_object(task.manifest, segment)
    await create_retrying(ground.store, CHECKPOINTS, manifest, ground.clock)
    assert task.journal is not None
    journal = replace(
        task.journal, entries=(), head=segment.head, sealed=manifest["metadata"]["name"], sealed_next=1, next=1
    )
    with pytest.raises(NewerJournalError, match=f"schema {SCHEMA + 1}"):
        await read_journal(ground.store, replace(task, journal=journal), ground.clock)


async def test_a_segment_reads_back_as_it_was_written(ground: Ground) -> None:
    segment, manifest = Sealed(await ground.task(), 3).segments[2]
    await create_retrying(ground.store, CHECKPOINTS, manifest, ground.clock)
    assert await read_segment(ground.store, ground.namespace, manifest["metadata"]["name"], ground.clock) == segment
