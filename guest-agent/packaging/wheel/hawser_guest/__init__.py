"""CUDA for Python where the GPU is elsewhere: Hawser's guest libraries, and the command `hawser`."""
import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = os.path.join(_FOLDER, "lib")
COMMAND = os.path.join(_FOLDER, "bin", "hawser")


def command():
    """Becomes the command `hawser`, with the arguments of this process."""
    os.execv(COMMAND, ["hawser"] + sys.argv[1:])
