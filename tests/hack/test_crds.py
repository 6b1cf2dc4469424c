"""The files in crds/ and their reference are what the models say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from aura_operator.api.schema import structural_schema
from hack import crds
from hack.cluster import CHECKOUT


def test_the_files_in_crds_are_what_the_models_say() -> None:
    assert crds.main(["--check"]) == 0


def test_a_stale_missing_or_foreign_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert crds.main(["--root", str(tmp_path)]) == 0
    assert crds.main(["--check", "--root", str(tmp_path)]) == 0
    folder = tmp_path / "crds"
    (folder / "auratasks.yaml").write_text("changed", encoding="utf-8")
    (folder / "auraagents.yaml").unlink()
    shutil.copy(folder / "aurasessions.yaml", folder / "aurathings.yaml")
    (tmp_path / "docs" / "reference" / "crds.md").write_text("changed", encoding="utf-8")
    assert crds.main(["--check", "--root", str(tmp_path)]) == 1
    said = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in said] == [
        "crds/auraagents.yaml",
        "crds/auratasks.yaml",
        "crds/aurathings.yaml",
        "docs/reference/crds.md",
    ]
    assert all("run `make crds`" in line for line in said)


def test_the_reference_names_every_field_and_every_rule() -> None:
    page = (CHECKOUT / crds.REFERENCE).read_text(encoding="utf-8")
    assert "| `spec.mcpServers[].headersSecretRef` |" in page
    assert "| **`spec.decisions.*.approved`** | boolean |" in page
    assert "| `spec.limits.toolResultBytes` | integer, from 1024, to 163840 | `131072` |" in page
    assert "- epoch never falls" in page


def test_generated_files_are_valid_yaml_without_references() -> None:
    for text in crds.manifests().values():
        assert "$ref" not in json.dumps(yaml.safe_load(text))


def test_a_free_union_is_refused_when_it_is_written() -> None:
    class Loose(BaseModel):
        either: int | list[str]

    with pytest.raises(ValueError, match="a structural schema has no unions"):
        structural_schema(Loose)
