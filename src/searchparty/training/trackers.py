"""Sending the metrics of a run to experiment trackers besides `metrics.jsonl`, which stays the truth.

Each tracker gets a line of `metrics.jsonl` at most once, whatever happens to the process: what is sent is written down before,
so that a resumed run repeats nothing. A tracker that fails is named once and left alone; training goes on. Knows lines and the
three methods of a tracker; nothing of training.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from searchparty.errors import UserError, missing_package
from searchparty.files import read_json, write_json
from searchparty.http_calls import blot
from searchparty.training.recipe import TrainRecipe
from searchparty.training.run_directory import MetricsLog

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")


class Tracker(Protocol):
    """One experiment tracker. Any method may raise anything."""

    def begin(self, run_dir: Path, recipe: Mapping[str, Any]) -> None:
        """Open the run of this directory, the same one again if it was opened before. `recipe` holds no secrets."""

    def log(self, line: Mapping[str, Any]) -> None:
        """Send the numbers of one line of `metrics.jsonl`."""

    def close(self) -> None:
        """Send what is still waiting, and end."""


def scalars(line: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a line under flat names: `STAGE/roles/searcher/rewards/total`, `STAGE/development/score`.

    What is no number (None, text, lists) is left out.
    """
    prefix = str(line["stage"]) + ("" if line["kind"] == "step" else f"/{line['kind']}")
    return dict(_flat(prefix, {key: value for key, value in line.items() if key not in ("stage", "kind", "step")}))


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{prefix}/{key}", inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield prefix, float(value)


def check_trackers(names: Sequence[str]) -> None:
    """Raises UserError, one line each, for trackers whose package is not installed."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise UserError(*(str(missing_package(name, "trackers", f"the tracker {name}")) for name in missing))


class Trackers:
    """The trackers of one run, and how far each of them is."""

    def __init__(self, trackers: Mapping[str, Tracker], run_dir: Path, say: Callable[[str], None]) -> None:
        self._trackers = dict(trackers)
        self._folder = run_dir / "trackers"
        self._say = say
        self._sent: dict[str, dict[str, int]] = {}
        """Tracker to `stage kind` to the last step that was sent."""

    @property
    def _sent_file(self) -> Path:
        return self._folder / "sent.json"

    def begin(self, recipe: TrainRecipe, lines: Iterator[Mapping[str, Any]]) -> None:
        """Open all trackers and send them the lines that they have not had.

        Raises:
            UserError: one cannot be opened.
        """
        self._folder.mkdir(exist_ok=True)
        if self._sent_file.is_file():
            self._sent = read_json(self._sent_file, dict)
        shown = json.loads(without_secrets(recipe.model_dump_json()))
        for name, tracker in list(self._trackers.items()):
            try:
                tracker.begin(self._folder.parent, shown)
            except Exception as error:
                del self._trackers[name]  # what never began cannot end
                raise UserError(
                    f"tracker {name}: cannot begin ({_describe(error)}); set it up, or leave it out of trackers, then --resume"
                ) from None
        for line in lines:
            self.log(line)

    def log(self, line: Mapping[str, Any]) -> None:
        """Send a line to every tracker that has not had it."""
        place, step = f"{line['stage']} {line['kind']}", int(line["step"])
        behind = [name for name in self._trackers if self._sent.get(name, {}).get(place, -1) < step]
        if not behind:
            return
        for name in behind:
            self._sent.setdefault(name, {})[place] = step
        write_json(self._sent_file, self._sent)
        for name in behind:
            try:
                self._trackers[name].log(line)
            except Exception as error:
                self._say(f"tracker {name}: failed ({_describe(error)}); it gets nothing more, metrics.jsonl has everything")
                with suppress(Exception):
                    self._trackers.pop(name).close()

    def close(self) -> None:
        """End all trackers."""
        for name, tracker in self._trackers.items():
            try:
                tracker.close()
            except Exception as error:
                self._say(f"tracker {name}: could not end ({_describe(error)}); its last lines may be missing there")


@contextmanager
def tracked(run_dir: Path, recipe: TrainRecipe, metrics: MetricsLog, say: Callable[[str], None]) -> Iterator[None]:
    """Within the block every line that is added to the metrics goes to the recipe's trackers too.

    Raises:
        UserError: a package is missing, or a tracker cannot be opened.
    """
    if not recipe.trackers:
        yield
        return
    check_trackers(recipe.trackers)
    from searchparty.training.tracker_kinds import KINDS

    trackers = Trackers({name: KINDS[name]() for name in recipe.trackers}, run_dir, say)
    try:
        trackers.begin(recipe, metrics.lines())
        metrics.also = trackers.log
        yield
    finally:
        metrics.also = None
        trackers.close()


def without_secrets(text: str) -> str:
    """The text with the value of every environment variable blotted out whose name says that it is a secret."""
    for name, value in os.environ.items():
        if _SECRET_NAME.search(name) and len(value) >= 8:
            text = blot(text, value)
    return text


def _describe(error: Exception) -> str:
    """Type and first line of an exception, without secrets."""
    first = str(error).partition("\n")[0]
    return without_secrets(f"{type(error).__name__}: {first:.200}")
