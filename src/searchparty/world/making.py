"""From parameters to a world."""

from __future__ import annotations

import random

from searchparty.world.asking import Asker
from searchparty.world.inhabitants import Inhabitants
from searchparty.world.pages import write_pages
from searchparty.world.parameters import WorldParameters
from searchparty.world.types import World


def make_world(parameters: WorldParameters | None = None) -> World:
    """Make a world. Equal parameters make equal worlds.

    Raises:
        UserError: if the world is too small for the questions that are wanted.
    """
    parameters = parameters or WorldParameters()
    # One stream of random numbers per part: what one part draws does not shift the others.
    inhabitants = Inhabitants(parameters, random.Random(f"inhabitants {parameters.seed}"))
    passages, facts, where = write_pages(inhabitants, parameters, random.Random(f"pages {parameters.seed}"))
    asker = Asker(inhabitants.entities, facts, parameters, random.Random(f"questions {parameters.seed}"))
    return World(parameters, inhabitants.entities, facts, passages, where, asker.ask(passages, where))
