"""The cases of a framework: functions that return numbers. Each prints one line of JSON.

hawser-check --frameworks runs a script natively and through Hawser, and compares the numbers of each case bit by bit. A case that
repeats work also takes a number of steps and a timer; its times are compared, and its round trips counted.
"""
import argparse
import glob
import importlib
import json
import os
import sys
import time
import traceback

UNSUPPORTED = 77  # the exit code for a framework that is not installed
_cases = []


class Timer:
    """Measures the steps of a case without what it prepares."""

    def __init__(self):
        self.seconds = None

    def start(self):
        """Call it when the GPU is idle."""
        self.seconds = -time.perf_counter()

    def stop(self):
        """Call it when the GPU is idle again."""
        self.seconds += time.perf_counter()


def case(steps=0, tolerance=0.0):
    """Registers a case.

    steps: how often it repeats its work; it is called with this number and a Timer. 0: it is called without arguments.
    tolerance: the relative difference that two runs on the same GPU may have, where the framework does not promise equal bits.
    """
    def register(function):
        _cases.append((function, steps, tolerance))
        return function
    return register


def need(*modules):
    """Imports modules; ends the script when one is not installed."""
    try:
        return [importlib.import_module(name) for name in modules]
    except ImportError as e:
        print(json.dumps({"missing": e.name or str(e)}))
        sys.exit(UNSUPPORTED)


def _run(function, steps, tolerance):
    line = {"case": function.__name__, "steps": steps, "tolerance": tolerance}
    timer = Timer()
    try:
        line["result"] = function(steps, timer) if steps else function()
        if timer.seconds is not None:
            line["seconds"] = timer.seconds
    except Exception as e:  # pylint: disable=broad-except  # the next case may work, and the line says what failed
        traceback.print_exc()
        line["error"] = f"{type(e).__name__}: {e}"[:500]
    print(json.dumps(line), flush=True)
    return "error" not in line


def main(framework, version):
    """Runs the cases that the command line names; the exit code is 1 when one failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", action="append", help="the cases to run (all)")
    parser.add_argument("--steps", type=int, help="steps of a case that repeats its work")
    parser.add_argument("--list", action="store_true", help="print the names of all cases")
    options = parser.parse_args()
    if options.list:
        print("\n".join(function.__name__ for function, _, _ in _cases))
        return
    unknown = set(options.case or []) - {function.__name__ for function, _, _ in _cases}
    if unknown:
        parser.error("no such case: " + ", ".join(sorted(unknown)))
    print(json.dumps({"framework": framework, "version": version}), flush=True)
    good = True
    for function, steps, tolerance in _cases:
        if not options.case or function.__name__ in options.case:
            good &= _run(function, options.steps or steps if steps else 0, tolerance)
    sys.exit(0 if good else 1)


def libraries():
    """The folders of wheels that have NVIDIA's libraries."""
    found = {os.path.realpath(os.path.dirname(file)) for folder in sys.path
             for file in glob.glob(os.path.join(folder, "nvidia", "*", "lib", "lib*.so.*"))}
    return sorted(found)


if __name__ == "__main__":
    print(",".join(libraries()))
