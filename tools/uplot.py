"""The released file of uPlot that HTML reports hold.

    python tools/uplot.py [VERSION]    # fetch a release (by npm) and put it into the package
    python tools/uplot.py --check      # fail if the files are not those that were recorded

`source.json` beside the files records version and checksums. After renewing it, run the tests of
`tests/report/test_html_in_browser.py`.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

FOLDER = (
    Path(__file__).resolve().parent.parent / "memdiag" / "report" / "formats" / "html" / "uplot"
)
SOURCE = FOLDER / "source.json"
# Names in the release, by the names in the package.
FILES = {
    "LICENSE": "package/LICENSE",
    "uPlot.iife.min.js": "package/dist/uPlot.iife.min.js",
    "uPlot.min.css": "package/dist/uPlot.min.css",
}


def main() -> int:
    arguments = sys.argv[1:]
    if arguments == ["--check"]:
        return check()
    recorded = json.loads(SOURCE.read_text(encoding="utf-8"))
    return renew(arguments[0] if arguments else recorded["version"])


def check() -> int:
    """Compare the files with their checksums."""
    recorded = json.loads(SOURCE.read_text(encoding="utf-8"))
    changed = [name for name, known in recorded["sha256"].items() if known != sha256(name)]
    for name in changed:
        print(f"{FOLDER.name}/{name} is not the released file: run `make uplot`")
    return 1 if changed or set(recorded["sha256"]) != set(FILES) else 0


def renew(version: str) -> int:
    """Fetch a release and record it."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", f"uplot@{version}"]
        packed = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        with tarfile.open(Path(folder) / packed.stdout.split()[-1]) as release:
            for name, inside in FILES.items():
                member = release.extractfile(inside)
                if member is None:
                    raise FileNotFoundError(inside)
                (FOLDER / name).write_bytes(member.read())
    source = {
        "name": "uPlot",
        "version": version,
        "license": "MIT",
        "from": f"npm package uplot@{version}",
        "sha256": {name: sha256(name) for name in FILES},
    }
    SOURCE.write_text(json.dumps(source, indent=2) + "\n", encoding="utf-8")
    print(f"uPlot {version}")
    return 0


def sha256(name: str) -> str:
    return hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
