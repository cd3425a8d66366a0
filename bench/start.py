"""How long a command takes to start, as a whole process, beside a bare Python interpreter measured in turn with it."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 7


def seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    commands = {
        "python -c pass": ["-c", "pass"],
        "searchparty --help": ["-m", "searchparty.cli.main", "--help"],
        "searchparty eval --help": ["-m", "searchparty.cli.main", "eval", "--help"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(RUNS):
        for name, words in commands.items():
            times[name].append(seconds([sys.executable, *words]))
    bare = statistics.median(times["python -c pass"])
    print(f"start of a command, median of {RUNS} runs in turn")
    for name, values in times.items():
        median = statistics.median(values)
        print(f"  {name:26s} {median:6.3f} s  {median / bare:5.1f} x a bare interpreter")


if __name__ == "__main__":
    main()
