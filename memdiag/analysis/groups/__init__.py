"""The ranks of a job, judged as one run."""
