"""These tests are not of the suite, even where the trackers happen to be installed."""

import os

if not os.environ.get("MEMDIAG_TRACKERS"):
    collect_ignore_glob = ["test_*"]
