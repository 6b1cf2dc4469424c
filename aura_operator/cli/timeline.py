"""`aura timeline TASK`: a task's journal as numbered steps, from any machine, whoever owns the task."""

from __future__ import annotations

import asyncio

import click

from aura_operator.errors import AuraError, NotFoundError
from aura_operator.process import kubeconfig_option


@click.command()
@kubeconfig_option
@click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the task.")
@click.argument("task")
def timeline(kubeconfig: str | None, namespace: str, task: str) -> None:
    """Show what TASK has done so far, and who decided."""
    try:
        asyncio.run(_show(kubeconfig, namespace, task))
    except NotFoundError as error:
        raise click.ClickException(f"there is no AuraTask {namespace}/{task}") from error
    except AuraError as error:
        raise click.ClickException(str(error)) from error


async def _show(kubeconfig: str | None, namespace: str, name: str) -> None:
    from aura_operator.cli.steps import steps
    from aura_operator.clock import SystemClock
    from aura_operator.store.journal_reads import read_entries
    from aura_operator.store.kube import KubeStore
    from aura_operator.store.view import task_ref, task_view

    store = await KubeStore.connect(kubeconfig)
    try:
        task = task_view(await store.get(task_ref(namespace, name)))
        entries = await read_entries(store, task, SystemClock())
    finally:
        await store.aclose()
    for step in steps(entries):
        click.echo(step)
    summary = task.manifest.get("status", {}).get("summary", "")
    click.echo(f"{task.phase.value}: {summary}")
