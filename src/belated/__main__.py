"""``python -m belated`` is the ``belated`` command."""

import sys

from belated.cli import main

sys.exit(main())
