"""In the copy of the repository: what marked places call. A process without the plugin, such as a host that a test
starts, writes down what it reaches first.
"""

import builtins
import os

_reached = set()


def _weft_reach(k):
    if k not in _reached:
        _reached.add(k)
        folder = os.environ.get("WEFT_REACH")
        if folder:
            with open(os.path.join(folder, f"{os.getpid()}.process"), "a") as file:
                file.write(f"{k}\n")


builtins._weft_reach = _weft_reach
