"""The training demo from beginning to end, with a recipe of one step per stage."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SMALL = """
extends: {recipe}
defaults: {{questions_per_step: 2, samples: 2, candidates: 2, concurrency: 16, learner: {{minibatches: 1}}}}
stages:
  teacher: {{steps: 1}}
  student: {{steps: 1}}
  c-mas-base: {{limit: 2, samples: 1}}
  c-mas-rl: {{limit: 2, samples: 1}}
  h-mas-base: {{limit: 2, samples: 1}}
  multiagent-opd: {{limit: 2, samples: 1}}
"""
RECIPE = Path(__file__).parents[2] / "recipes" / "world-demo.yaml"


def test_the_demo_trains_both_stages_compares_them_with_their_base_and_audits_the_run(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SMALL.format(recipe=RECIPE))
    command = [sys.executable, "-m", "searchparty.demo", "--recipe", "small.yaml", "--output", "runs/demo"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "$ searchparty world make -o runs/world" in done.stdout
    for system in ("C-MAS base", "C-MAS + RL", "H-MAS base", "MultiAgent-OPD"):
        assert system in done.stdout
    assert "points of exact match against H-MAS base, 95 % interval" in done.stdout
    assert "No rule is broken" in done.stdout
    assert "wrote ▶" in done.stdout
    assert "report: runs/demo-report/report.html" in done.stdout
    assert "MultiAgent-OPD" in (tmp_path / "runs" / "demo-report" / "report.html").read_text()
    again = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)
    assert again.returncode == 0, "a finished demo is shown again, not made again"
    assert "--resume" in again.stdout
