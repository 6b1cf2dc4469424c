"""The kinds of the group aura.mezmo.com as pydantic models, and the CRDs generated from them.

Owns shapes and bounds only: no I/O, no decisions. Import the models from here.
"""

from __future__ import annotations

from aura_operator.api.agent import AuraAgent
from aura_operator.api.approval import AuraApproval
from aura_operator.api.checkpoint import AuraCheckpoint
from aura_operator.api.resource import GROUP, VERSION, Resource
from aura_operator.api.session import AuraSession
from aura_operator.api.task import AuraTask

KINDS: tuple[type[Resource], ...] = (AuraAgent, AuraTask, AuraApproval, AuraSession, AuraCheckpoint)

__all__ = [
    "GROUP",
    "KINDS",
    "VERSION",
    "AuraAgent",
    "AuraApproval",
    "AuraCheckpoint",
    "AuraSession",
    "AuraTask",
    "Resource",
]
