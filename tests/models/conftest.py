"""Makes `tiny_models` and `stub_model_server` importable for the tests of this folder, whichever import mode pytest uses."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
