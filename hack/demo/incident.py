"""What happens: a task runs, its worker dies, everybody dies, a person decides. Owns the order and what is measured.

Shows what kubectl and the journal show; nothing is told that was not seen.
"""

from __future__ import annotations

import json
import shlex
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aura_operator.core.instants import from_text
from hack.cluster import tools
from hack.demo import scene
from hack.demo.errors import DemoError
from hack.demo.journal import Story, read
from hack.demo.processes import await_ready
from hack.demo.say import command, heading, line
from hack.demo.scene import NAMESPACE, TASK, Scene
from hack.progress import Progress
from hack.rig.processes import Process, Processes
from hack.rig.waiting import wait_until

STEP_SECONDS = 60.0
POLL_SECONDS = 0.1
PENDING, WAITING, RUNNING = "Pending", "Waiting", "Running"
ENDED = ("Succeeded", "Failed", "Cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was measured, in seconds."""

    kill_to_next_step: float
    all_killed_to_ready: float
    decision_to_call: float | None
    deciders: tuple[str, ...]
    approved: bool


@dataclass(kw_only=True)
class Incident:
    """The story of one task. `workers` and `controller` are the lives that are alive."""

    scene: Scene
    processes: Processes
    workers: list[Process] = field(default_factory=list)
    controller: Process | None = None

    def begin(self) -> None:
        """Starts a controller and two workers, and submits the task."""
        with Progress("starting one controller and two workers"):
            self.controller = self.processes.controller("demo-controller", ready=False)
            self.workers = [self.processes.worker(f"demo-worker-{number}", ready=False) for number in (1, 2)]
            await_ready(self.workers, self.controller)
        for life in self._lives():
            line(f"{life.name} runs with pid {life.pid}, log {life.log}")
        scene.submit(self.scene.requester)
        line(f"{scene.REQUESTER} has created AuraTask {TASK}")

    def kill_the_owner(self) -> float:
        """kill -9 in the middle of a model call; returns the seconds until another life made that call again."""
        self._until("the task is in its second model call", lambda _: self._story().thinks_again())
        owner = self._owner()
        # Between the look and the kill the call might end: the journal tells below whether it has.
        killed_at = time.time()
        owner.kill9()
        line(f"kill -9 {owner.pid}: {owner.name}, in the middle of a model call")
        self._show("get", "auratask", TASK)
        self.workers[self.workers.index(owner)] = self._worker_again(owner)
        line("its container is restarted, as the kubelet would: the same Pod UID in its Lease proves the old one dead")
        line("(with the node gone there is no such proof, and the task is free when the Lease runs out, 15 s later);")
        line("a worker that died with a task lets the others try it first, so the other one goes on")
        self._until("the task waits for a decision", lambda status: status["phase"] == WAITING)
        story = self._story()
        seconds = story.second_thought_after(killed_at)
        if seconds is None:
            raise DemoError("the model had answered before the kill: this machine is very busy. Run `make demo` again.")
        heir = story.owners[-1]
        if heir.worker == owner.name:
            line("here it was its own next life all the same: the other worker was too busy to be first")
        line(f"epoch {heir.epoch}: {heir.worker} read the journal and made the model call again {seconds:.2f} s later;")
        line("the tool call before it was not made again: its result is in the journal")
        return seconds

    def kill_everybody(self, approval: str) -> float:
        """kill -9 of every worker and the controller; returns the seconds until all are ready again."""
        before = self._approval(approval)["metadata"]["uid"]
        began = time.monotonic()
        for life in self._lives():
            life.kill9()
        line("kill -9 " + " ".join(str(life.pid) for life in self._lives()) + ": nobody of ours is alive")
        self._show("get", "auratasks,auraapprovals")
        with Progress("starting all of them anew"):
            assert self.controller is not None
            last = self.controller
            self.controller = self.processes.controller(last.name, pod_uid=last.pod_uid, ready=False)
            self.workers = [self._worker_again(life) for life in self.workers]
            await_ready(self.workers, self.controller)
        seconds = time.monotonic() - began
        if self._approval(approval)["metadata"]["uid"] != before:
            raise DemoError(f"AuraApproval {approval} is another one than before")
        line(f"all are back after {seconds:.1f} s, and the approval is still there, the same one")
        return seconds

    def approval(self) -> str:
        """The name of the approval that the task waits for."""
        waits = [wait for wait in self._status()["waitingFor"] if wait["kind"] == "Approval"]
        if len(waits) != 1:
            raise DemoError(f"{TASK} waits for {waits or 'nothing'}, not for one approval")
        return str(waits[0]["name"])

    def ask(self, approval: str) -> None:
        """Shows what is to be decided, and how."""
        request = self._approval(approval)["spec"]["request"]
        line(f"{request['tool']} ({request['effect']}) wants to be called with")
        for text in json.loads(request["arguments"])["resource"].rstrip().splitlines():
            print(f"      {text}")
        requester = self.scene.requester.run(*_patch(approval))
        line(
            f"{scene.REQUESTER} is on call too, but she asked for the task. She tries to approve; the API server says:"
        )
        print(f"      {requester.stderr.strip()}")
        if requester.returncode == 0:
            raise DemoError(f"{scene.REQUESTER} could approve her own task")

    def decide(self, approval: str) -> None:
        """The second user decides, as a person would."""
        command("kubectl " + shlex.join(["--kubeconfig", str(self.scene.approver.kubeconfig), *_patch(approval)]))
        print(f"      {self.scene.approver(*_patch(approval)).strip()}")

    def wait_for_decision(self, approval: str) -> None:
        """Shows what to type in another terminal, and returns when it was typed there."""
        line("Your turn, as bob, in another terminal:")
        print()
        if shutil.which("kubectl") is None:
            print(f"  export PATH={tools.bin_folder()}:$PATH")
        place = ["--kubeconfig", str(self.scene.approver.kubeconfig), "--namespace", NAMESPACE]
        print("  kubectl " + shlex.join([*place, *_patch(approval)]))
        print('\n  (or "approved":false with your reason. This goes on by itself; Ctrl-C ends everything.)\n')
        with Progress("waiting for your decision") as progress:
            while (status := self._approval(approval)["status"])["phase"] == PENDING:
                progress.detail = f"{approval}, until {self._approval(approval)['spec']['expiresAt']}"
                time.sleep(POLL_SECONDS * 5)
        if status["phase"] not in ("Approved", "Denied"):
            raise DemoError(f"{approval} is {status['phase']}: {status.get('reason', '')}. Run `make demo` again.")

    def end(self, approval: str) -> tuple[float | None, tuple[str, ...], bool]:
        """Waits for the end; seconds from the decision to the call (None if denied), who decided, and how."""
        status = self._until("the task ends", lambda status: status["phase"] in ENDED)
        if status["phase"] != "Succeeded":
            raise DemoError(f"{TASK} ended as {status['phase']}: {status.get('summary')}")
        story = self._story()
        decided = story.decided()
        if decided is None:
            raise DemoError(f"{TASK} ended without a decision")
        called_at = story.intent_at()
        delay = None if called_at is None else called_at - self._settled_at()
        return delay, decided.by, decided.verdict.value == "Approved"

    def timeline(self) -> None:
        command(f"aura timeline -n {NAMESPACE} {TASK}")
        for step in self._story().timeline():
            print(f"      {step}")
        self._show("get", "auratask", TASK)

    # How it is seen

    def _lives(self) -> list[Process]:
        return [*([self.controller] if self.controller else []), *self.workers]

    def _worker_again(self, last: Process) -> Process:
        """The next life of the same container."""
        return self.processes.worker(last.name, pod_uid=last.pod_uid, ready=False)

    def _owner(self) -> Process:
        worker = self._status()["owner"]["worker"]
        return next(life for life in self.workers if life.name == worker)

    def _settled_at(self) -> float:
        """When the controller had seen the decision; the status tells it to the second only."""
        assert self.controller is not None
        return from_text(str(self.controller.logged("approval settled")[-1]["timestamp"]))

    def _status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.scene.admin.json("get", "auratask", TASK)["status"]
        return status

    def _story(self) -> Story:
        return Story(entries=read(self.scene.admin.kubeconfig, NAMESPACE, TASK))

    def _approval(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.scene.admin.json("get", "auraapproval", name)
        return found

    def _until(self, what: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        status: dict[str, Any] = {}
        with Progress(f"until {what}") as progress:

            def looked() -> bool:
                nonlocal status
                status = self._status()
                progress.detail = f"{status['phase']}: {status.get('summary', '')}"
                if status["phase"] == "Failed" and not holds(status):
                    raise DemoError(f"{TASK} did not come to where {what}. It is {progress.detail}")
                return holds(status)

            wait_until(looked, lambda: f"{TASK} where {what}: it is {progress.detail}", STEP_SECONDS)
        return status

    def _show(self, *arguments: str) -> None:
        command("kubectl " + shlex.join(arguments))
        for text in self.scene.admin(*arguments).rstrip().splitlines():
            print(f"      {text}")


def _patch(approval: str) -> list[str]:
    body = {"spec": {"decision": {"approved": True, "reason": "seen in INC-4711"}}}
    return ["patch", "auraapproval", approval, "--type=merge", "-p", json.dumps(body, separators=(",", ":"))]


def play(incident: Incident, *, decides_itself: bool) -> Figures:
    """The whole story."""
    heading("A task runs, and its worker is killed")
    incident.begin()
    next_step = incident.kill_the_owner()
    heading("Everybody is killed while a person is asked")
    approval = incident.approval()
    incident.ask(approval)
    ready = incident.kill_everybody(approval)
    heading("A person decides")
    if decides_itself:
        incident.decide(approval)
    else:
        incident.wait_for_decision(approval)
    delay, deciders, approved = incident.end(approval)
    heading("What happened")
    incident.timeline()
    return Figures(
        kill_to_next_step=next_step,
        all_killed_to_ready=ready,
        decision_to_call=delay,
        deciders=deciders,
        approved=approved,
    )
