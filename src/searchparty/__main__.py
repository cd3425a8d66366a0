"""`python -m searchparty`, the same as the command `searchparty`."""

import sys

from searchparty.cli.main import main

sys.exit(main())
