"""A long load on `examples/serve.py`, with a change of weights after a third of the time and a killed replica after two:

    python -m tests.serve.load --seconds 600

Each answer is compared with that of a local model. It prints the numbers of requests by their outcome, and fails unless
all answers are right and no more requests fail than the killed replica can have begun.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path


def main() -> int:
    """Run the load; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600, help="seconds of the load (default: %(default)s)")
    options = parser.parse_args()
    if importlib.util.find_spec("ray") is None:
        print("not run: the extra `ray` is not installed", file=sys.stderr)
        return 1
    from tests.serve.test_example import CONNECTIONS, Load, Program, fits

    with tempfile.TemporaryDirectory() as folder:
        program = Program(Path(folder))
        before = program.replicas()
        start, load = time.monotonic(), Load(program)
        while time.monotonic() < start + options.seconds / 3:
            time.sleep(0.1)
        asked = len(load.seen)
        program.change_weights()
        changed = len(load.seen) + CONNECTIONS  # answers to requests that were sent before the change had ended
        same = program.replicas() == before
        while time.monotonic() < start + options.seconds * 2 / 3:
            time.sleep(0.1)
        killed = len(load.seen)
        os.kill(next(iter(before)), signal.SIGKILL)
        while time.monotonic() < start + options.seconds:
            time.sleep(0.1)
        replaced = len(program.replicas()) == len(before) and program.replicas() != before
        seen = load.stop()
        seconds = time.monotonic() - start
        program.process.send_signal(signal.SIGINT)
        code = program.process.wait(60)
        old, new = program.models
        found: Counter[str] = Counter()
        for number, (ids, status, content) in enumerate(seen):
            if status != 200:
                found[f"status {status}"] += 1
            elif number >= asked and fits(new, ids, content):
                found["right, new weights"] += 1
            elif number < changed and fits(old, ids, content):
                found["right, old weights"] += 1
            else:
                found["wrong"] += 1
    failed = sum(count for outcome, count in found.items() if outcome.startswith("status"))
    early = sum(status != 200 for _, status, _ in seen[:killed])
    print(f"{len(seen)} requests in {seconds:.0f} s from {CONNECTIONS} connections: {dict(sorted(found.items()))}")
    print(f"weights changed at {asked}, in the same replicas: {same}; a replica killed at {killed}, replaced: {replaced}")
    print(f"failed before the kill: {early}, after it: {failed - early}; the program ended with {code}")
    return 0 if not found["wrong"] and not early and failed <= CONNECTIONS and same and replaced and not code else 1


if __name__ == "__main__":
    sys.exit(main())
