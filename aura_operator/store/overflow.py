"""What is too large or too sensitive for a status: sealed journal segments, large payloads, and Secrets.

Owns the objects' form and names. Names follow from the content, so whoever writes one writes the same; they are owned
by the task and go with it.
"""

from __future__ import annotations

import base64
import gzip
import zlib
from hashlib import sha256
from typing import Any

from aura_operator.clock import Clock
from aura_operator.core.journal import Segment
from aura_operator.core.text import dumps
from aura_operator.core.transcript import Secret, Stored
from aura_operator.errors import (
    AlreadyExistsError,
    ContentRejectedError,
    DamagedJournalError,
    ForbiddenError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
)
from aura_operator.store.commit import RIGHTS_SECONDS, Backoff, get_retrying
from aura_operator.store.interface import Store
from aura_operator.store.resources import CHECKPOINTS, SECRETS, Manifest, Ref, Resource, new, owned_by

MAX_DATA_BYTES = 245_000  # with its metadata, an object stays under 256 KiB
SECRET_KEY = "payload"


def payload_object(task: Manifest, text: str) -> tuple[Stored, Manifest]:
    """The AuraCheckpoint for one large payload, and how a journal line refers to it."""
    digest = sha256(text.encode()).hexdigest()
    manifest = _checkpoint(task, "payload", digest, text, {"type": "Payload"})
    return Stored(name=manifest["metadata"]["name"], sha256=digest, size_bytes=len(text.encode())), manifest


def segment_object(task: Manifest, segment: Segment) -> Manifest:
    """The AuraCheckpoint for a sealed stretch of the journal."""
    text = "\n".join(segment.lines)
    journal = {
        "schema": segment.schema,
        "first": segment.first,
        "next": segment.next,
        "headBefore": segment.head_before,
        "head": segment.head,
        "previous": list(segment.previous),
    }
    # The head covers all that came before; two segments of the same text at different places differ by it.
    return _checkpoint(task, "journal", segment.head, text, {"type": "Journal", "journal": journal})


def secret_object(task: Manifest, text: str, nonce: str) -> tuple[Secret, Manifest]:
    """The Secret for a sensitive payload. Its name comes from `nonce`: a hash would tell of short contents."""
    name = _name(task, "sensitive", nonce)
    manifest = new(SECRETS, task["metadata"]["namespace"], name, type="Opaque", immutable=True)
    manifest["data"] = {SECRET_KEY: base64.b64encode(text.encode()).decode()}
    return Secret(name=name, size_bytes=len(text.encode())), owned_by(manifest, task)


async def ensure(store: Store, resource: Resource, manifest: Manifest) -> None:
    """Creates an object whose name says its content. One that is there must be of the same owner and content."""
    metadata = manifest["metadata"]
    body = "data" if resource == SECRETS else "spec"
    while True:
        try:
            await store.create(resource, manifest)
        except AlreadyExistsError:
            try:
                found = await store.get(Ref(resource=resource, namespace=metadata["namespace"], name=metadata["name"]))
            except NotFoundError:
                continue  # collected in between, with another owner
        else:
            return
        owners = [owner["uid"] for owner in found["metadata"].get("ownerReferences", ())]
        if found.get(body) != manifest[body] or owners != [metadata["ownerReferences"][0]["uid"]]:
            raise ContentRejectedError(
                f"{resource.kind} {metadata['namespace']}/{metadata['name']} is there with another owner or content; "
                f"it was not written by this operator: delete it"
            )
        return


async def create_retrying(store: Store, resource: Resource, manifest: Manifest, clock: Clock) -> None:
    """As `ensure`, but waits out outages. Raises RefusedError too."""
    about = f"{resource.kind} {manifest['metadata']['namespace']}/{manifest['metadata']['name']}"
    backoff = Backoff(clock, about=about, refused_seconds=RIGHTS_SECONDS)
    while True:
        try:
            return await ensure(store, resource, manifest)
        except (OutcomeUnknownError, UnavailableError, ForbiddenError) as error:
            await backoff.wait(error)


async def read_stored(store: Store, namespace: str, stored: Stored, clock: Clock) -> str:
    """The text of a large payload. Raises DamagedJournalError if it is gone or was changed."""
    ref = Ref(resource=CHECKPOINTS, namespace=namespace, name=stored.name)
    text = _decoded(await _read(store, ref, clock), ref)
    if sha256(text.encode()).hexdigest() != stored.sha256:
        raise _changed(ref)
    return text


async def read_secret(store: Store, namespace: str, secret: Secret, clock: Clock) -> str:
    """The text of a sensitive payload. Raises DamagedJournalError if it is gone or was changed."""
    ref = Ref(resource=SECRETS, namespace=namespace, name=secret.name)
    manifest = await _read(store, ref, clock)
    try:
        text = base64.b64decode(manifest["data"][SECRET_KEY]).decode()
    except (KeyError, ValueError) as error:
        raise _changed(ref) from error
    if len(text.encode()) != secret.size_bytes:
        raise _changed(ref)
    return text


async def read_segment(store: Store, namespace: str, name: str, clock: Clock) -> Segment:
    """A sealed stretch of a journal. Raises DamagedJournalError if it is gone or is something else."""
    ref = Ref(resource=CHECKPOINTS, namespace=namespace, name=name)
    manifest = await _read(store, ref, clock)
    journal = manifest["spec"].get("journal")
    if journal is None:
        raise _changed(ref)
    return Segment(
        first=journal["first"],
        next=journal["next"],
        head_before=journal["headBefore"],
        head=journal["head"],
        schema=journal["schema"],
        lines=tuple(_decoded(manifest, ref).split("\n")),
        previous=tuple(journal.get("previous", ())),
    )


async def _read(store: Store, ref: Ref, clock: Clock) -> Manifest:
    try:
        return await get_retrying(store, ref, clock)
    except NotFoundError as error:
        raise DamagedJournalError(f"{ref}, a part of the journal, is gone; the task can't go on") from error


def _checkpoint(task: Manifest, kind: str, digest: str, text: str, content: dict[str, Any]) -> Manifest:
    encoding, data = _encoded(text)
    metadata = task["metadata"]
    if len(data.encode()) > MAX_DATA_BYTES:
        raise ContentRejectedError(
            f"a {kind} of {len(text.encode())} bytes of AuraTask {metadata['namespace']}/{metadata['name']} is too "
            f"large to be kept (at most {MAX_DATA_BYTES} bytes after compression)"
        )
    spec = {
        "owner": {"kind": task["kind"], "name": metadata["name"], "uid": metadata["uid"]},
        "encoding": encoding,
        "data": data,
        "sha256": sha256(text.encode()).hexdigest(),
        "bytes": len(text.encode()),
        **content,
    }
    return owned_by(new(CHECKPOINTS, metadata["namespace"], _name(task, kind, digest), spec=spec), task)


def _name(task: Manifest, kind: str, digest: str) -> str:
    metadata = task["metadata"]
    return f"{metadata['name']}-{metadata['uid'][:8]}-{kind}-{digest[:16]}"


def _encoded(text: str) -> tuple[str, str]:
    """Gzip where the object gets smaller by it; the same bytes for the same text, always."""
    packed = base64.b64encode(gzip.compress(text.encode(), compresslevel=6, mtime=0)).decode()
    # In the request a plain text is escaped as JSON, and that is what counts.
    return ("GzipBase64", packed) if len(packed) < len(dumps(text)) else ("Plain", text)


def _decoded(manifest: Manifest, ref: Ref) -> str:
    spec = manifest["spec"]
    data: str = spec["data"]
    if spec["encoding"] == "Plain":
        return data
    try:
        return gzip.decompress(base64.b64decode(data)).decode()
    except (ValueError, OSError, EOFError, zlib.error) as error:  # not base64, not gzip, cut, damaged
        raise _changed(ref) from error


def _changed(ref: Ref) -> DamagedJournalError:
    return DamagedJournalError(f"{ref}, a part of the journal, was changed from outside; the task can't go on")
