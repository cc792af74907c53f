"""Runs random programs on a platform and prints those that fail, shrunk, as source that runs."""

from __future__ import annotations

import argparse
import collections
import os
import pathlib
import sys
import time

os.environ.setdefault("WEFT_VERIFY_JAXPRS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.append(str(pathlib.Path(__file__).parent.parent))

import weft  # noqa: E402
from programs.check import Failure, check  # noqa: E402
from programs.maker import make  # noqa: E402
from programs.report import failure_of, report  # noqa: E402
from programs.targets import TARGETS, target_for  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m programs", description=__doc__)
    parser.add_argument("--platform", choices=TARGETS, default="wasm")
    parser.add_argument("--start", type=int, default=0, help="the first seed; from 1000000 on programs have a theme")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after as many")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--progress", type=pathlib.Path, help="a file that always holds the seed that is run")
    options = parser.parse_args()
    begin, failed, kinds = time.time(), [], collections.Counter[str]()
    seed = options.start
    for seed in range(options.start, options.start + options.count):
        if time.time() - begin > options.seconds:
            break
        if options.progress:
            options.progress.write_text(str(seed))
        target = target_for(options.platform, seed)
        program = make(seed, target.settings)
        try:
            check(program, target)
        except Failure as failure:
            failed.append(seed)
            kinds[failure.kind] += 1
            print(
                failure_of(program, target, failure) if options.no_shrink else report(program, target, failure),
                flush=True,
            )
        if seed % 200 == 199:
            weft.clear_caches()
    else:
        seed = options.start + options.count
    print(
        f"{options.platform}: programs {options.start} to {seed - 1} in {time.time() - begin:.0f} s, {len(failed)}"
        f" failed {failed} {dict(kinds)}"
    )
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
