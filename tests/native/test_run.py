"""`weft-run`: labels, ends, signals, and what each process finds in its environment."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
import several

from weft_native import run


def program(folder, source: str):
    path = folder / "program.py"
    path.write_text("import os, sys, time\nme = int(os.environ['JAX_PROCESS_ID'])\n" + source)
    return path


def test_each_line_has_the_number_of_its_process(tmp_path):
    path = program(
        tmp_path,
        "for i in range(200):\n    print('line', i, 'x' * 50)\n"
        "sys.stderr.write('no end of line')\nprint(sys.argv[1:])\n",
    )
    done = several.weft_run("-n", 3, path, "--steps", "10", "-n", "7")
    assert done.returncode == 0
    out = done.stdout.splitlines()
    for i in range(3):
        mine = [line for line in out if line.startswith(f"[{i}] ")]
        assert mine[:-1] == [f"[{i}] line {k} {'x' * 50}" for k in range(200)], "whole lines, in order"
        assert mine[-1] == f"[{i}] ['--steps', '10', '-n', '7']", "the program's own arguments"
    assert len(out) == 3 * 201
    assert sorted(done.stderr.splitlines()) == [f"[{i}] no end of line" for i in range(3)]


def test_one_that_fails_ends_the_others(tmp_path):
    path = program(
        tmp_path,
        "if me == 2:\n    time.sleep(1)\n    for i in range(20):\n        print('before', i)\n    sys.exit(7)\n"
        "time.sleep(100)\n",
    )
    before = time.monotonic()
    done = several.weft_run("-n", 4, path)
    assert time.monotonic() - before < 30
    assert done.returncode == 7
    assert "weft-run: process 2 of 4 ended with code 7, and ends the other 3. Its last lines:\n" in done.stderr
    assert done.stderr.endswith("".join(f"  before {i}\n" for i in range(10, 20))), done.stderr


def test_one_that_is_killed(tmp_path):
    done = several.weft_run("-n", 2, program(tmp_path, "if me == 1:\n    os.kill(os.getpid(), 9)\ntime.sleep(100)\n"))
    assert done.returncode == 128 + 9 and "process 1 of 2 was killed by SIGKILL" in done.stderr
    assert done.stderr.endswith("Its last lines: none.\n")


def test_those_that_do_not_end_when_told_are_killed(tmp_path):
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready')\n"
    path = program(tmp_path, deaf + "if me == 0:\n    time.sleep(1)\n    sys.exit(1)\ntime.sleep(100)\n")
    before = time.monotonic()
    assert several.weft_run("-n", 2, "--grace", 1, path).returncode == 1
    assert time.monotonic() - before < 30


def test_those_that_are_told_have_time_to_part(tmp_path):
    slow = "import signal\ndef stop(number, frame):\n    time.sleep(1.5)\n    print('parted')\n    sys.exit(3)\n"
    path = program(tmp_path, slow + "signal.signal(signal.SIGTERM, stop)\nprint('ready')\ntime.sleep(100)\n")
    command = [sys.executable, "-m", "weft_native.run", "-n", "1", "--grace", "30", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout.readline() == "[0] ready\n"
        started.send_signal(signal.SIGTERM)
        assert started.communicate(timeout=60)[0] == "[0] parted\n"


@pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGTERM))
def test_signals_reach_all(tmp_path, number):
    path = program(
        tmp_path,
        "import signal\n"
        "def stop(number, frame):\n    print('told', number)\n    sys.exit(3)\n"
        "signal.signal(signal.SIGINT, stop)\nsignal.signal(signal.SIGTERM, stop)\nprint('ready')\ntime.sleep(100)\n",
    )
    started = subprocess.Popen(
        [sys.executable, "-m", "weft_native.run", "-n", "2", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert sorted(started.stdout.readline() for _ in range(2)) == ["[0] ready\n", "[1] ready\n"]
        started.send_signal(number)
        out, err = started.communicate(timeout=60)
    finally:
        started.kill()
    assert sorted(out.splitlines()) == [f"[{i}] told {int(number)}" for i in range(2)], "once each"
    assert started.returncode == 128 + number and err == "", "an end that was asked for is no failure"


def test_modules_and_commands():
    assert run.command("train.py", ["-v"], False) == [sys.executable, "train.py", "-v"]
    assert run.command("pkg.train", ["-v"], True) == [sys.executable, "-m", "pkg.train", "-v"]
    assert run.command("weft-host", ["--port", "1"], False) == ["weft-host", "--port", "1"]
    done = several.weft_run("-n", 2, "-m", "platform")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[0][:3] in ("[0]", "[1]") and lines[0][4:] == lines[1][4:]
    done = several.weft_run("-n", 12, "-m", "this")
    assert {line[:5] for line in done.stdout.splitlines()} == {f"[{i:>2}] " for i in range(12)}


def test_what_can_not_be_started(tmp_path):
    done = several.weft_run("-n", 2, "no-such-command")
    assert done.returncode == 127 and "'no-such-command' can't be started: No such file or directory" in done.stderr
    done = several.weft_run("-n", 2, tmp_path / "absent.py")
    assert done.returncode == 2 and re.search(r"there is no file .*absent.py", done.stderr)
    for wrong in (("-n", 0), ("-n", 1, "--devices", 0)):
        done = several.weft_run(*wrong, "-m", "this")
        assert done.returncode == 2 and "must be at least 1; got 0" in done.stderr


def test_environment():
    made = run.environment({"PATH": "p", "JAX_PLATFORMS": ""}, 1, 4, 5000, None, None)
    assert made == {
        "PATH": "p",
        "JAX_COORDINATOR_ADDRESS": "127.0.0.1:5000",
        "JAX_COORDINATOR_BIND_ADDRESS": "127.0.0.1:5000",
        "JAX_NUM_PROCESSES": "4",
        "JAX_PROCESS_ID": "1",
        "JAX_PLATFORMS": "cpu",
        "PYTHONUNBUFFERED": "1",
    }
    made = run.environment({"JAX_PLATFORMS": "cuda"}, 1, 4, 5000, 2, None)
    assert made["JAX_PLATFORMS"] == "cuda" and made["JAX_LOCAL_DEVICE_IDS"] == "1"
    assert made["JAX_NUM_CPU_DEVICES"] == "2"
    assert "JAX_LOCAL_DEVICE_IDS" not in run.environment({"JAX_PLATFORMS": "cuda"}, 1, 4, 5000, 2, "cpu")
    assert run.environment({"JAX_LOCAL_DEVICE_IDS": "5"}, 1, 4, 1, 2, "cuda")["JAX_LOCAL_DEVICE_IDS"] == "5"


def test_the_command_is_installed():
    command = os.path.join(os.path.dirname(sys.executable), "weft-run")
    done = subprocess.run([command, "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "--devices" in done.stdout
