"""Keeps the prices of thousands of models out of memory: pydantic-ai loads them with the first model it builds.

Owns that saving (some 20 MiB of a worker's 150) and nothing else. What reads tokens out of a response stays.
"""

from __future__ import annotations

import gc
import sys
from dataclasses import replace

from genai_prices.data_snapshot import DataSnapshot, set_custom_snapshot


def forget_prices() -> None:
    """Puts the providers without their models in place of the whole snapshot. Doing it again changes nothing."""
    if _DATA in sys.modules:
        return
    from genai_prices.data import providers

    set_custom_snapshot(
        DataSnapshot(providers=[replace(provider, models=[]) for provider in providers], from_auto_update=False)
    )
    # The module stays known, so that nobody loads it again, but no longer holds what takes the room.
    sys.modules[_DATA].__dict__["providers"] = []
    del providers
    gc.collect()


_DATA = "genai_prices.data"
