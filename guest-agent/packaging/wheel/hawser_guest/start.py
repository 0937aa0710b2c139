"""Gives each Python program of an environment Hawser's libraries. hawser_guest.pth calls it when Python starts.

It starts the interpreter again by `hawser run`, before the program's first line. A Python inside another program cannot
start again: there it loads the libraries, so that libraries with the same names are not loaded later.
"""
import os
import sys

from hawser_guest import COMMAND, LIBRARIES


def _is_interpreter():
    """Whether this process is the interpreter, and not a program that contains one."""
    try:
        return os.path.samefile("/proc/self/exe", sys.executable)
    except (OSError, TypeError, ValueError):
        return False


def _arguments():
    """The arguments that the interpreter was started with, also those before the script."""
    with open("/proc/self/cmdline", "rb") as file:
        return file.read().split(b"\0")[1:-1]


def _preload():
    """Loads the libraries. The dynamic linker then takes them for those that a program needs by name."""
    import ctypes  # needed here only

    for name in sorted(os.listdir(LIBRARIES)):
        if ".so." in name:
            ctypes.CDLL(os.path.join(LIBRARIES, name))


def start():
    """Does nothing in a process that `hawser run` has started, or in one of its children."""
    if os.environ.get("HAWSER_PYTHON") == "off" or "libhawser-audit.so" in os.environ.get("LD_AUDIT", ""):
        return
    try:
        if _is_interpreter():
            sys.stdout.flush()
            os.execv(COMMAND, [COMMAND, "run", "--", sys.executable] + _arguments())
        _preload()
    except OSError as e:
        print(f"hawser: Python runs without Hawser's libraries: {e}", file=sys.stderr)
