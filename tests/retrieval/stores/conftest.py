"""Makes the helpers of this folder and of the one above importable, whichever import mode pytest uses."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
