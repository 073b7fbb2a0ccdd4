"""These tests are not of the suite, even where the engines happen to be installed."""

import os

if not os.environ.get("MEMDIAG_ENGINES"):
    collect_ignore_glob = ["test_*"]
