"""Entries as JSON lines and back: `{"k": kind, "at": time, …}`, one line each, defaults left out.

Owns the journal's number; the kinds and their fields are in kinds.py.
"""

from __future__ import annotations

from typing import Any

import orjson

from aura_operator.core.entries import Entry
from aura_operator.core.instants import from_text, to_text
from aura_operator.core.kinds import KINDS, Fields, Kind, UnknownWordError
from aura_operator.core.text import dumps
from aura_operator.errors import DamagedJournalError, NewerJournalError

SCHEMA = 2  # the highest number that any entry of this version needs


def known(schema: int) -> bool:
    """Whether this version reads journals of that schema."""
    return schema <= SCHEMA


def schema_of(entry: Entry) -> int:
    """The lowest schema with which a journal that holds this entry is read rightly."""
    kind = _BY_CLASS[type(entry)]
    return max(kind.since, kind.needs(entry))


def encode(entry: Entry) -> str:
    """The line of an entry. Lone surrogates, which no UTF-8 text can hold, become U+FFFD first."""
    kind = _BY_CLASS[type(entry)]
    fields: Fields = {"k": kind.name, "at": to_text(entry.at), **kind.write(entry)}
    return dumps({name: value for name, value in fields.items() if value is not None})


def decode(line: str) -> Entry:
    """The entry of a line. Raises NewerJournalError for a kind or a word that this version doesn't know,
    DamagedJournalError for a line that no version wrote."""
    try:
        fields: Fields = orjson.loads(line)
        name, at = fields["k"], from_text(fields["at"])
        kind = _BY_NAME.get(name)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise _damaged(line, error) from error
    if kind is None:
        raise NewerJournalError(f"the journal has entries of the kind {name!r}, which this version doesn't know")
    try:
        entry: Entry = kind.read(at, fields)
    except UnknownWordError as error:
        raise NewerJournalError(
            f"an entry of the kind {name!r} says {error}, which this version doesn't know"
        ) from error
    except (KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise _damaged(line, error) from error
    return entry


def _damaged(line: str, error: Exception) -> DamagedJournalError:
    return DamagedJournalError(f"a journal entry can't be read ({error!r}): {line[:200]}")


_BY_CLASS: dict[type[Any], Kind[Any]] = {kind.entry: kind for kind in KINDS}
_BY_NAME: dict[str, Kind[Any]] = {kind.name: kind for kind in KINDS}
