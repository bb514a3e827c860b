"""`python -m fairlead` is the `fairlead` command."""

import sys

from fairlead.cli.__main__ import main

sys.exit(main())
