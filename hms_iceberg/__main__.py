"""`python -m hms_iceberg`: the `hms-iceberg` command, where its script is not on the path."""

from __future__ import annotations

import sys

from hms_iceberg.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
