"""These tests are not of the suite, even where the trainers happen to be installed."""

import os

if not os.environ.get("MEMDIAG_TRAINERS"):
    collect_ignore_glob = ["test_*"]
