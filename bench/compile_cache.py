"""How much sooner a second process starts a jitted function with the persistent compile cache.

    python bench/compile_cache.py

The program is the gradient step of transformer_program.py (12 layers, width 512, vocabulary 1,000, batch 8 x 128), in
two processes over one empty cache folder. Printed for each are its phases, the seconds from the call of the jitted
function until the step has started (the call has returned; XLA works on) and until its result is there, which the
step's own arithmetic takes part in; then the ratios of the second process to the first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time


def measure(folder: str) -> dict[str, float]:
    """Seconds by phase, in this process."""
    import weft
    import weft.as_jax  # noqa: F401
    import transformer_program as program
    from weft import monitoring

    weft.config.update("jax_platforms", "cpu")
    weft.config.update("jax_compilation_cache_dir", folder)
    phases: dict[str, float] = {}
    monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **_: phases.__setitem__(event, phases.get(event, 0) + seconds)
    )
    params, tokens = weft.block_until_ready(weft.device_put((program.parameters(), program.tokens())))
    phases.clear()
    start = time.perf_counter()
    _, loss = program.step(params, tokens)
    started = time.perf_counter() - start
    loss = float(loss)
    return {
        "started": started,
        "result": time.perf_counter() - start,
        "loss": loss,
        **{k.rsplit("/", 1)[-1]: v for k, v in phases.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    folder = parser.parse_args().measure
    if folder:
        print(json.dumps(measure(folder)))
        return
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            json.loads(
                subprocess.run(
                    [sys.executable, os.path.abspath(__file__), "--measure", folder],
                    check=True,
                    stdout=subprocess.PIPE,
                    text=True,
                ).stdout.splitlines()[-1]
            )
            for _ in range(2)
        ]
    for which, run in zip(("first", "second"), runs):
        print(f"{which:7}", "  ".join(f"{name} {value:.3f}" for name, value in run.items()))
    print(
        f"ratio    started {runs[1]['started'] / runs[0]['started']:.3f}  result"
        f" {runs[1]['result'] / runs[0]['result']:.3f}"
    )


if __name__ == "__main__":
    main()
