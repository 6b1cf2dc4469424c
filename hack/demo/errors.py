"""What can end the demo early, each with a remedy. Owns no handling."""

from __future__ import annotations

from aura_operator.errors import AuraError


class DemoError(AuraError):
    """The demo can't go on, or the world isn't as it promises."""

    reason = "DemoFailed"
