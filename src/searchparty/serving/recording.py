"""Keeps the episodes of a served team as a run directory, which is read like that of an evaluation.

Its questions have no golden answers, and stand in its episodes alone: a server does not know them when it begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from searchparty.config.recipe import EvalRecipe, TeamRecipe
from searchparty.episodes.store import EpisodeWriter
from searchparty.episodes.types import Episode
from searchparty.evaluation.run_directory import RunDirectory, describe_service
from searchparty.evaluation.staging import Stage


@contextmanager
def recording(
    path: Path, recipe: TeamRecipe, stage: Stage, *, resume: bool, overwrite: bool
) -> Iterator[Callable[[Episode], None]]:
    """What writes an episode into the directory `path`, as long as the block lasts.

    Args:
        resume: add to the record that is there.
        overwrite: delete it and begin again.

    Raises:
        UserError: the directory holds something else, or a record of another team, model or index; or it cannot be written.
    """
    run = RunDirectory(path)
    run.check_may_begin(resume=resume, overwrite=overwrite)
    kept = EvalRecipe.model_validate({**recipe.model_dump(), "questions": run.episodes_file})
    environment = describe_service(stage.describe())
    with run.locked():
        if resume:
            run.check_same(kept, environment)
        else:
            run.begin(kept, None, environment)
        with EpisodeWriter(run.episodes_file) as writer:
            yield writer.write
