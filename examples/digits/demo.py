"""Trains the digits program on every backend that this machine has, and prints one table.

    python examples/digits/demo.py [--steps N] [--rows xla,wasm,webgpu,host,page]

Each row runs digits.py unchanged, in a process of its own.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ROWS = {"xla": "cpu", "wasm": "wasm", "webgpu": "webgpu", "host": "remote"}
COMPARED = 50


def run_row(platform: str, steps: int, connect: str | None) -> dict:
    """One row, in this process: the accuracy, the seconds to the first step, the steps per second, the first losses."""
    start = time.perf_counter()
    import weft

    if connect:
        import weft.remote

        url, token = connect.split(" ")
        weft.remote.connect(url, token=token)
    weft.config.update("jax_platforms", platform)
    sys.path.insert(0, str(HERE))
    import digits

    losses, times = [], []

    def watch(i, value, _):
        losses.append(value)
        if i == 0 or i == steps - 1:
            value.block_until_ready()
        times.append(time.perf_counter())

    accuracy = digits.train(steps, watch)
    return {
        "accuracy": accuracy,
        "first": times[0] - start,
        "rate": (steps - 1) / (times[-1] - times[0]),
        "losses": [float(x) for x in losses[:COMPARED]],
    }


@contextlib.contextmanager
def host():
    """An accelerator host on loopback: "url token"."""
    token = secrets.token_urlsafe(16)
    command = [
        shutil.which("weft-host", path=os.path.dirname(sys.executable)) or "weft-host",
        "--port",
        "0",
        f"--token={token}",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        for line in process.stdout:
            found = re.search(r"ws://[\w.:\[\]]+", line)
            if found:
                yield f"{found.group()} {token}"
                return
        raise RuntimeError("weft-host ended before it said where it listens")
    finally:
        process.terminate()
        process.wait()


def child(*args: str) -> dict:
    result = subprocess.run([sys.executable, __file__, *args], capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(
            result.stderr.strip().splitlines()[-1] if result.stderr.strip() else "it ended without a word"
        )
    return json.loads(result.stdout.splitlines()[-1])


def page(steps: int) -> dict:
    """The row of the page: the built playground in Chromium."""
    node = shutil.which("node")
    if node is None or not (ROOT / "build" / "site" / "index.html").exists():
        raise RuntimeError("needs Node and the built playground (make web)")
    result = subprocess.run(
        [node, str(ROOT / "tools" / "demo-page.mjs"), "--site", str(ROOT / "build" / "site"), "--steps", str(steps)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    if result.returncode:
        raise RuntimeError((result.stderr.strip() or result.stdout.strip()).splitlines()[-1])
    return json.loads(result.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument("--rows", default=",".join([*ROWS, "page"]))
    parser.add_argument("--row", help=argparse.SUPPRESS)
    parser.add_argument("--connect", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.row:
        print(json.dumps(run_row(args.row, args.steps, args.connect)))
        return 0
    print(
        f"{'backend':10} {'test accuracy':>13} {'first step, s':>13} {'steps/s':>9}"
        f" {'largest relative difference of the first 50 losses':>51}"
    )
    reference, failed = None, 0
    for name in args.rows.split(","):
        try:
            if name == "page":
                row = page(args.steps)
            elif name == "host":
                with host() as where:
                    row = child("--row", "remote", "--steps", str(args.steps), "--connect", where)
            else:
                row = child("--row", ROWS[name], "--steps", str(args.steps))
        except Exception as e:
            print(f"{name:10} not here: {e}")
            failed += name in ("xla", "wasm", "host")
            continue
        reference = reference or row["losses"]
        difference = max(abs(a - b) / abs(b) for a, b in zip(row["losses"], reference))
        label = "page wasm" if name == "page" else name
        print(
            f"{label:10} {row['accuracy']:>12.1%} {row['first']:>13.2f} {row['rate']:>9.0f} {difference:>51.1e}",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
