"""Runs the command line: `python3 -m tinymodel`."""

import sys

from .cli import main

sys.exit(main())
