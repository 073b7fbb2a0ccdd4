"""Commands are run one after the other, and their outputs kept for a summary at the end."""

import subprocess
import sys
import time
from dataclasses import dataclass, field

COMMAND = [
    "/bin/sh",
    "-c",
    "i=0; while [ $i -lt 200 ]; do echo line $i of this output; i=$((i+1)); done",
]


@dataclass
class Jobs:
    finished: list[subprocess.CompletedProcess] = field(default_factory=list)

    def run(self) -> int:
        done = subprocess.run(COMMAND, capture_output=True, check=True)
        self.finished.append(subprocess.CompletedProcess(done.args, 0, done.stdout * 8))
        return len(done.stdout)


def main() -> None:
    jobs, start = Jobs(), time.monotonic()
    while time.monotonic() - start < float(sys.argv[1]):
        jobs.run()
        time.sleep(0.05)
    failed = [job for job in jobs.finished if job.returncode]
    print(f"{len(jobs.finished)} jobs in {time.monotonic() - start:.1f} s, {len(failed)} failed")


if __name__ == "__main__":
    main()
