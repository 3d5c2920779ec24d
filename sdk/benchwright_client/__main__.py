"""`python -m benchwright_client` is the command `benchwright`."""

import sys

from benchwright_client.cli.main import main

sys.exit(main())
