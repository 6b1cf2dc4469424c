"""The real MCP server for Kubernetes, as the demo uses it; here without any cluster behind it."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from aura_operator.agent.mcp.servers import ServerSpec, Transport
from aura_operator.agent.mcp.toolbox import Toolbox
from aura_operator.core.effects import Effect, hinted_effect
from aura_operator.core.entries import Outcome
from hack.cluster import tools as cluster_tools
from tests.agent.desk import at_once, tool_call

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: away, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: away, context: {cluster: away, user: nobody}}]
current-context: away
users: [{name: nobody, user: {}}]
"""


@pytest.mark.timeout(300)  # the first run on a machine fetches the package
async def test_its_tools_are_known_with_their_effects_and_its_failures_are_told(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    toolbox = Toolbox(
        (
            ServerSpec(
                name="k8s",
                transport=Transport.STDIO,
                command=str(cluster_tools.kubernetes_mcp_server()),
                env={"KUBECONFIG": str(tmp_path / "kubeconfig")},
                trust_hints=True,
            ),
        )
    )
    try:
        with capture_logs() as logs:
            await toolbox.start()
        effects = {name: hinted_effect(tool.hints) for name, tool in toolbox.tools.items() if tool.hints is not None}
        outcome = await toolbox.call(tool_call("k8s__pods_list", timeout_seconds=20), at_once)
    finally:
        await toolbox.aclose()

    assert "tool refused" not in {line["event"] for line in logs}
    assert effects["k8s__pods_list"] is Effect.READ
    assert effects["k8s__resources_create_or_update"] is Effect.IDEMPOTENT
    assert effects["k8s__pods_run"] is None
    assert outcome.status is Outcome.ERROR
    assert "connection refused" in outcome.text
