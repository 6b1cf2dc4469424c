"""Every figure with its goal: the one table. Owns what is promised and why; measuring is the groups' part."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Goal:
    """`at_most` is an upper bound in `unit`; None for a figure that only tells. `x` is a ratio within one run."""

    name: str
    at_most: float | None
    unit: str
    why: str


_APPENDS = "claim and end not counted; what a read brings travels with the next answer"
_RATIO = "median over short blocks of steps, each against the raw appends right before and after it"

GOALS = {
    goal.name: goal
    for goal in (
        Goal("raw-append-p50", None, "ms", "the limit: one conditional append of 400 bytes, nothing else"),
        Goal("raw-append-p99", None, "ms", "how noisy the machine is"),
        Goal("appends-per-read-step-0ms", 1.0, "writes", _APPENDS),
        Goal("appends-per-read-step-20ms", 1.0, "writes", _APPENDS),
        Goal("appends-per-read-step-300ms", 1.0, "writes", _APPENDS),
        Goal("read-step-10", 0.3, "ms", "result → next model call: no write stands in between"),
        Goal("read-step-500", 0.3, "ms", "the same late in a task: a step costs what it is, not what the history is"),
        Goal("once-step-p50", None, "ms", "one call sent → the next one sent"),
        Goal("once-step-ratio", 1.2, "x", _RATIO),
        Goal("once-step-ratio-alike", None, "x", "the same against raw appends of what a step writes: lines and facts"),
        Goal("large-step-start", None, "ms", "a step with 10 KB of pod JSON, early in 500"),
        Goal("large-step-growth", 1.1, "x", "the last 100 of 500 steps against the first"),
        Goal("large-stored", 1.3, "x", "bytes stored against bytes of results"),
        Goal("large-object", 256, "KiB", "the largest object: the limit of etcd is 1.5 MiB"),
        Goal("decision-to-call-p50", None, "ms", "a person's patch is sent → the approved call reaches its server"),
        Goal("decision-to-call-p99", None, "ms", "the same"),
        Goal("decision-to-call-p50-ratio", 7, "x", "the writes on the way, and little else; against raw-append p50"),
        Goal("decision-to-call-p99-ratio", 25, "x", "nobody waits for a poll or a back-off; against raw-append p50"),
        Goal("sigterm-to-step", 200, "ms", "a rolling update is not felt"),
        Goal(
            "restart-to-step", 1000, "ms", "a container's new life proves the old one's death: no Lease is waited out"
        ),
        Goal("worker-rss", 145, "MB", "after work, without development packages: what a Pod's memory limit is set by"),
        Goal("controller-rss", 100, "MB", "the same; it loads neither models nor tools"),
    )
}
