"""A generated closed world: invented entities, passages about them, questions over them, and scripts that play every role.

For tests, for teaching and for the demo. Everything follows from its parameters; nothing in it is known to any model.
"""

from searchparty.world.experts import Expert, world_scripts
from searchparty.world.faults import Faults
from searchparty.world.making import make_world
from searchparty.world.parameters import WorldParameters
from searchparty.world.storing import load_world, write_world
from searchparty.world.types import World

__all__ = ["Expert", "Faults", "World", "WorldParameters", "load_world", "make_world", "world_scripts", "write_world"]
