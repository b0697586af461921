"""`python -m farthing` is the program `farthing`."""

import sys

from farthing.cli import main

if __name__ == "__main__":
    sys.exit(main())
