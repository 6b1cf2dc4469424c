"""Which Pending task this worker takes next. Owns ranks, slots and turns; claiming itself is intake.py's."""

from __future__ import annotations

from dataclasses import dataclass

from aura_operator.core import codec
from aura_operator.core.instants import BootSeconds, UnixSeconds
from aura_operator.core.lifecycle import Desired, Phase
from aura_operator.core.ownership import QUARANTINE_RECOVERIES, RANK_DELAY_SECONDS, rank
from aura_operator.store.view import TaskView

PATIENCE_SECONDS = 5.0
FIRST_TROUBLE_SECONDS = 5.0
LONGEST_TROUBLE_SECONDS = 300.0
TRY_SECONDS = 60.0  # more than a try takes, unless nothing comes of it

Agent = tuple[str, str]
"""Namespace and name."""


@dataclass(slots=True, kw_only=True)
class _Candidate:
    task: TaskView
    rank: int
    due: float  # on the boot clock: when it is this worker's turn to try


@dataclass(slots=True, kw_only=True)
class _Trouble:
    """An agent whose tasks can't be run now. None is tried before `until` (boot clock), then one: `probe`, a uid."""

    seconds: float
    until: float
    probe: str = ""


class Candidates:
    """The Pending tasks that this worker knows of. `worker` is its name; peers are the live workers with free slots."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._tasks: dict[str, _Candidate] = {}
        self._served: dict[str, int] = {}  # when each namespace had its last turn
        self._turn = 0
        self._troubled: dict[Agent, _Trouble] = {}
        self._left: set[str] = set()  # uids of tasks with which only a newer version can go on

    def offer(self, task: TaskView, peers: set[str], now: BootSeconds, wall: UnixSeconds) -> None:
        """Takes note of a task as it is now. `now` is on the boot clock, `wall` in Unix seconds."""
        if not takeable(task) or task.uid in self._left:
            self._tasks.pop(task.uid, None)
            return
        if task.desired is Desired.PAUSE and task.deadline is not None:
            # Nobody runs it, but its active deadline counts on, and somebody has to end it.
            self._tasks[task.uid] = _Candidate(task=task, rank=0, due=now + max(0.0, task.deadline - wall))
            return
        place = len(peers) if self._died_of(task) else rank(task.uid, self._worker, peers)
        known = self._tasks.get(task.uid)
        same_chance = known is not None and known.task.epoch == task.epoch
        due = known.due if known is not None and same_chance else now + place * RANK_DELAY_SECONDS
        self._tasks[task.uid] = _Candidate(task=task, rank=place, due=due)

    def _died_of(self, task: TaskView) -> bool:
        """Whether this worker's last life ended with the task in its hands: then others try it first."""
        last = task.last_end
        return last is not None and last.proof.is_death and last.owner.worker == self._worker

    def forget(self, uid: str) -> None:
        self._tasks.pop(uid, None)

    def leave(self, task: TaskView) -> None:
        """Never offers a task again: only a newer version can go on with it, though its number doesn't say so."""
        self._left.add(task.uid)
        self._tasks.pop(task.uid, None)  # the release told of it before this

    def postpone(self, task: TaskView, until: float) -> None:
        """Tries a task again only at `until` (boot clock)."""
        self._tasks[task.uid] = _Candidate(task=task, rank=0, due=until)

    def trouble(self, task: TaskView, now: BootSeconds) -> None:
        """Its agent can't be used now: all tasks of that agent wait, twice as long each time, and cost no slots."""
        known = self._troubled.get(_agent(task))
        seconds = FIRST_TROUBLE_SECONDS if known is None else known.seconds
        if known is not None and known.probe == task.uid:  # those that were tried side by side failed once, together
            seconds = min(2 * seconds, LONGEST_TROUBLE_SECONDS)
        self._troubled[_agent(task)] = _Trouble(seconds=seconds, until=now + seconds)

    def no_trouble(self, task: TaskView) -> None:
        """Its agent can be used."""
        self._troubled.pop(_agent(task), None)

    def _barred(self, task: TaskView, now: BootSeconds, wall: UnixSeconds) -> bool:
        trouble = self._troubled.get(_agent(task))
        return trouble is not None and now < trouble.until and not ends_only(task, wall)

    def take(self, now: BootSeconds, wall: UnixSeconds, *, free_slots: int, running: int) -> TaskView | None:
        """The next task to claim, and no longer a candidate; None if there is none that may be claimed now.

        Tasks that only have to end need no slot. A task that cost its last workers their lives runs alone.
        """
        due = [
            candidate
            for candidate in self._tasks.values()
            if candidate.due <= now and not self._barred(candidate.task, now, wall)
        ]
        making_room = running > 0 and any(self._needs_room(candidate, now) for candidate in due)
        fit = [candidate.task for candidate in due if _fits(candidate.task, wall, free_slots, running, making_room)]
        if not fit:
            return None
        chosen = min(fit, key=lambda task: (-task.priority, self._served.get(task.ref.namespace, 0), task.epoch))
        self._turn += 1
        self._served[chosen.ref.namespace] = self._turn
        del self._tasks[chosen.uid]
        trouble = self._troubled.get(_agent(chosen))
        if trouble is not None and now >= trouble.until:
            # This one tries, and the others wait for what comes of it.
            trouble.probe, trouble.until = chosen.uid, now + max(trouble.seconds, TRY_SECONDS)
        return chosen

    @staticmethod
    def _needs_room(candidate: _Candidate, now: BootSeconds) -> bool:
        """Whether a task that runs alone has waited long enough for its first-ranked worker to take nothing else."""
        return candidate.rank == 0 and quarantined(candidate.task) and now - candidate.due > PATIENCE_SECONDS

    def next_due(self, now: BootSeconds) -> float | None:
        """When the next candidate that isn't due yet becomes so; None if there is none."""
        return min((candidate.due for candidate in self._tasks.values() if candidate.due > now), default=None)


def _agent(task: TaskView) -> Agent:
    return task.ref.namespace, task.agent


def _fits(task: TaskView, wall: UnixSeconds, free_slots: int, running: int, making_room: bool) -> bool:
    if ends_only(task, wall):
        return True
    if task.desired is Desired.PAUSE:
        return False
    if quarantined(task):
        return running == 0 and free_slots > 0
    return free_slots > 0 and not making_room


def takeable(task: TaskView) -> bool:
    """Whether anybody of this version may claim the task, now or (paused with a deadline) some time."""
    newer = task.journal is not None and not codec.known(task.journal.schema)
    wanted = task.desired is not Desired.PAUSE or task.deadline is not None
    return task.phase is Phase.PENDING and wanted and not task.deleting and not newer


def ends_only(task: TaskView, now: UnixSeconds) -> bool:
    """Whether the task can only be ended: cancelled, or its active deadline passed. `now` in Unix seconds."""
    return task.desired is Desired.CANCEL or (task.deadline is not None and now >= task.deadline)


def quarantined(task: TaskView) -> bool:
    return task.recoveries >= QUARANTINE_RECOVERIES
