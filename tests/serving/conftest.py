"""Makes `serving_factories` importable for the tests of this folder, whichever import mode pytest uses."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
