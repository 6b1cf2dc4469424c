"""How the demo speaks on standard output. Owns the look, not the words."""

from __future__ import annotations


def heading(text: str) -> None:
    print(f"\n== {text}", flush=True)


def line(text: str) -> None:
    print(f"   {text}", flush=True)


def command(text: str) -> None:
    print(f"   $ {text}", flush=True)
