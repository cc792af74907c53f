"""`python -m weft.doctor` on machines that lack one thing each, and on this one."""

import json
import pathlib
import re
import subprocess
import sys
import time
import tomllib

import pytest
from platforms import lack

from weft.doctor import Examination, Finding, examine
from weft.doctor.calculation import MARK, calculate, expected
from weft.doctor.command import lines, main
from weft.doctor.examine import INSTALL
from weft.doctor.findings import LIBTPU, numbers
from weft.doctor.machine import Here, Ran

ROOT = pathlib.Path(__file__).parents[2]
RIGHT = Ran(0, MARK + json.dumps({"devices": 1, "kind": "k", "error": 0.0, "first": 1.5, "again": 2e-4}), "")
SMI = "NVIDIA H100 80GB HBM3, 81559, 580.159.04\n"
CUDA = {
    "jax-cuda13-plugin": "0.10.2",
    "jax-cuda13-pjrt": "0.10.2",
    "nvidia-cublas": "13.1",
    "nvidia-cusolver": "12.0",
    "nvidia-cufft": "12.0",
    "nvidia-cudnn-cu13": "9.12",
}
PACKAGES = {
    "weft": "0.1.0",
    "weft-native": "0.1.0",
    "weft-wasm": "0.1.0",
    "weft-remote": "0.1.0",
    "jaxlib": "0.10.2",
    "numpy": "2.4.6",
    "ml_dtypes": "0.6.0",
    "scipy": "1.17.1",
    "wasmtime": "50.0.1",
    "wgpu": "0.32.0",
}


class Box:
    """A machine that has everything but accelerators; `versions` replaces packages (None: not installed), `files` are
    those that can be read, `smi` is what nvidia-smi prints, `ran` what becomes of the calculation of a platform.
    """

    system, processor, cores, python, executable = "linux", "x86_64", 2, "3.12.3", "python"

    def __init__(self, versions=(), files=(), smi=None, ran=(), absent=(), environment=(), system="linux"):
        self.packages = {k: v for k, v in {**PACKAGES, **dict(versions)}.items() if v is not None}
        self.files, self.smi, self.ran, self.absent = dict(files), smi, dict(ran), absent
        self.environment, self.system, self.commands = dict(environment), system, []

    def version(self, distribution):
        return self.packages.get(distribution)

    def has(self, module):
        if module.startswith("jax_plugins.xla_cuda"):
            return f"jax-{module.removeprefix('jax_plugins.xla_')}-plugin" in self.packages
        package = module if module in (*PACKAGES, "libtpu") else None
        return module not in self.absent and (package is None or package in self.packages)

    def read(self, path):
        return self.files.get(path)

    def matching(self, pattern):
        expression = re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\[0\-9\]", "[0-9]"))
        return [path for path in self.files if expression.fullmatch(path)]

    def run(self, *command, seconds):
        self.commands.append((command, seconds))
        if command[0] == "nvidia-smi":
            return None if self.smi is None else Ran(0, self.smi, "")
        return self.ran.get(command[3], RIGHT)


def found(name: str, box: Box, **options) -> Finding:
    made = examine(box, **options)
    return next(f for f in [*made.software, *made.devices, *made.platforms] if f.name == name)


def test_a_machine_that_has_everything_but_accelerators():
    made = examine(Box())
    states = {f.name: f.state for f in made.platforms}
    assert states == dict.fromkeys(("cpu", "wasm", "webgpu", "remote", "reference"), "ok") | {
        "cuda": "missing",
        "tpu": "missing",
    }
    assert made.faults() == [] and made.faults(["cuda"]) == ["cuda is required and does not compute"]
    assert not [f for f in made.software if f.state != "ok"]


@pytest.mark.parametrize(
    "name,box,state,text,remedy",
    [
        ("Python", {}, "ok", "3.12.3 (linux, x86_64, 2 cores)", ""),
        ("weft-wasm", {"versions": {"weft-wasm": None}}, "missing", "not installed", 'pip install "weft-wasm"'),
        ("jaxlib", {"versions": {"jaxlib": None}}, "missing", "not installed", "pip install weft-native"),
        ("cpu", {"versions": {"jaxlib": None}}, "missing", "jaxlib is not installed", INSTALL["cpu"]),
        ("wasmtime", {"versions": {"wasmtime": None}}, "missing", "not installed", 'pip install "weft[wasm]"'),
        ("wasm", {"versions": {"wasmtime": None}}, "missing", "wasmtime is not installed", INSTALL["wasm"]),
        ("wgpu", {"versions": {"wgpu": None}}, "missing", "not installed", 'pip install "weft[webgpu]"'),
        ("Vulkan drivers", {}, "missing", "none", "mesa-vulkan-drivers"),
        ("Vulkan drivers", {"files": {"/usr/share/vulkan/icd.d/lvp_icd.json": ""}}, "ok", "lvp_icd", ""),
        ("Vulkan drivers", {"environment": {"VK_DRIVER_FILES": "/x/nvidia_icd.json"}}, "ok", "nvidia_icd", ""),
        ("weft-host", {"absent": ("aiohttp",)}, "missing", "aiohttp: not installed", "pip install weft-native"),
        ("remote", {"absent": ("aiohttp",)}, "missing", "aiohttp is not installed", INSTALL["remote"]),
        ("NVIDIA GPU", {}, "missing", "none", ""),
        ("NVIDIA GPU", {"smi": SMI}, "ok", "NVIDIA H100 80GB HBM3, 81559 MiB", ""),
        ("NVIDIA driver", {"smi": SMI}, "ok", "580.159.04", ""),
        ("CUDA plugin", {"smi": SMI}, "missing", "not installed", 'pip install "weft[cuda13]"'),
        ("CUDA plugin", {"smi": SMI.replace("580", "550")}, "missing", "not installed", 'pip install "weft[cuda12]"'),
        ("cuda", {"smi": SMI}, "missing", "no plugin for CUDA", 'pip install "weft[cuda13]"'),
        ("NVIDIA GPU", {"versions": CUDA}, "missing", "start it with `--gpus all`", ""),
        ("cuda", {"versions": CUDA}, "missing", "there is no NVIDIA GPU", ""),
        ("cuda", {"versions": CUDA, "smi": SMI}, "ok", "1 device (k)", ""),
        ("CUDA plugin", {"versions": CUDA, "smi": SMI}, "ok", "jax-cuda13-plugin 0.10.2", ""),
        ("CUDA libraries", {"versions": CUDA, "smi": SMI}, "ok", "nvidia-cudnn-cu13 9.12", ""),
        (
            "NVIDIA driver",
            {"versions": CUDA, "smi": SMI.replace("580", "550")},
            "wrong",
            "CUDA 13 needs 580 or later",
            'pip install "weft[cuda12]"',
        ),
        (
            "NVIDIA driver",
            {"versions": CUDA, "smi": SMI.replace("580", "470")},
            "wrong",
            "CUDA 13 needs 580 or later",
            "update NVIDIA's driver to 580",
        ),
        (
            "NVIDIA driver",
            {"files": {"/dev/nvidia0": ""}},
            "wrong",
            "its driver does not answer",
            "install NVIDIA's driver",
        ),
        (
            "NVIDIA driver",  # without nvidia-smi
            {
                "files": {
                    "/dev/nvidia0": "",
                    "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  560.1.02  Release",
                }
            },
            "ok",
            "560.1.02",
            "",
        ),
        (
            "CUDA plugin",
            {"versions": {**CUDA, "jax-cuda13-plugin": "0.11.2"}, "smi": SMI},
            "wrong",
            "do not belong to jaxlib 0.10.2",
            'pip install "jax-cuda13-plugin[with-cuda]==0.10.2"',
        ),
        (
            "CUDA plugin",
            {"versions": {**CUDA, "jax-cuda13-pjrt": None}, "smi": SMI},
            "wrong",
            "without jax-cuda13-pjrt",
            'pip install "jax-cuda13-plugin[with-cuda]==0.10.2"',
        ),
        (
            "CUDA libraries",
            {"versions": {**CUDA, "nvidia-cudnn-cu13": None}, "smi": SMI},
            "missing",
            "nvidia-cudnn-cu13: not installed by pip, nor in /usr/local",
            'pip install "jax-cuda13-plugin[with-cuda]==0.10.2"',
        ),
        (
            "CUDA libraries",
            {
                "versions": {**CUDA, "nvidia-cudnn-cu13": None},
                "smi": SMI,
                "files": {"/usr/local/cuda-13/lib64/libcublas.so.13": ""},
            },
            "ok",
            "/usr/local/cuda",
            "",
        ),
        ("TPU", {}, "missing", "none", ""),
        ("TPU", {"files": {"/dev/accel0": ""}}, "ok", "1 chips", ""),
        ("libtpu", {"files": {"/dev/accel0": ""}}, "missing", "not installed", 'pip install "weft[tpu]"'),
        ("tpu", {"files": {"/dev/accel0": ""}}, "missing", "libtpu is not installed", 'pip install "weft[tpu]"'),
        ("libtpu", {"versions": {"libtpu": "0.0.42.1"}}, "ok", "0.0.42.1", ""),
        (
            "libtpu",
            {"versions": {"libtpu": "0.0.50"}},
            "wrong",
            "0.0.42.* belongs to jaxlib 0.10.2",
            'pip install "libtpu==0.0.42.*"',
        ),
        ("tpu", {"versions": {"libtpu": "0.0.42.1"}}, "ok", "1 device (k)", ""),
        # what becomes of the calculation
        (
            "cpu",
            {"ran": {"cpu": Ran(None, "", "waiting for the chip\n")}},
            "wrong",
            "no result in 90 s",
            "--seconds 180",
        ),
        ("cpu", {"ran": {"cpu": Ran(-11, "", "")}}, "wrong", "by signal SIGSEGV", ""),
        ("cpu", {"ran": {"cpu": Ran(1, "", "Traceback\nOSError: gone\n")}}, "wrong", "OSError: gone", ""),
        ("cpu", {"ran": {"cpu": None}}, "missing", "can't be started", ""),
        (
            "cpu",
            {"ran": {"cpu": Ran(0, MARK + '{"failed": "BackendError", "message": "the results are wrong"}', "")}},
            "wrong",
            "BackendError: the results are wrong",
            "",
        ),
        (
            "webgpu",
            {"ran": {"webgpu": Ran(0, MARK + '{"failed": "NoAdapterError", "message": "no adapter here"}', "")}},
            "missing",
            "no adapter here",
            "mesa-vulkan-drivers",
        ),
    ],
)
def test_what_is_missing_is_named_with_what_gets_it(name, box, state, text, remedy):
    finding = found(name, Box(**box))
    assert finding.state == state, finding
    assert text in finding.text and (remedy in finding.remedy if remedy else not finding.remedy), finding


def test_an_old_python_is_wrong():
    box = Box()
    box.python = "3.10.1"
    assert found("Python", box).state == "wrong"


def test_an_unknown_platform_has_no_backend():
    made = examine(Box(), only=["abacus"])
    assert [f[:3] for f in made.platforms] == [("abacus", "missing", "no installed package has this backend")]
    assert made.devices == [] and made.faults() == ["no platform computes"]


def test_a_page_has_no_processes_for_accelerators():
    made = examine(Box(system="emscripten", versions={"wasmtime": None, "jaxlib": None}), only=["wasm"])
    assert [f.name for f in made.devices] == ["Wasm"] and made.platforms[0].state == "ok"


def test_a_host_that_is_named_is_asked():
    box = Box(versions={"jaxlib": None})  # a client needs none
    assert found("remote", box, only=["remote"], host="ws://127.0.0.1:1").state == "ok"
    assert box.commands[-1][0][1:] == ("-m", "weft.doctor.calculation", "remote", "ws://127.0.0.1:1")
    assert "jaxlib" in found("remote", box, only=["remote"]).text


def test_the_exit_status_and_json(capsys):
    assert main(["--json"], Box()) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["good"] and printed["faults"] == []
    assert {f["name"]: f["state"] for f in printed["platforms"]}["cpu"] == "ok"
    assert main(["--json", "--only", "cpu", "--require", "cuda"], Box()) == 1
    printed = json.loads(capsys.readouterr().out)
    assert [f["name"] for f in printed["platforms"]] == ["cpu", "cuda"]
    assert printed["faults"] == ["cuda is required and does not compute"]
    with pytest.raises(SystemExit, match="2"):
        main(["--unknown"], Box())


def test_the_text(capsys):
    assert main(["--only", "cpu,cuda"], Box(ran={"cpu": Ran(-9, "", "")})) == 1
    out = capsys.readouterr().out
    assert "Software\n  Python           ok       3.12.3" in out
    assert '→ pip install "weft[cuda13]"' in out
    assert "Not in order:\n  cpu: the process ended by signal SIGKILL" in out
    assert all(len(line) <= 110 for line in out.splitlines() if "→" not in line)
    assert main(["--only", "cpu"], Box()) == 0
    assert capsys.readouterr().out.endswith("Everything that is here works: cpu.\n")


def test_long_texts_are_wrapped():
    assert len(lines(Finding("cpu", "wrong", "word " * 60))) > 2


def test_numbers_of_versions():
    assert numbers("0.12.0.1") == (0, 12, 0) and numbers("580.159.04") == (580, 159, 4) and numbers("") == ()


# this machine --------------------------------------------------------------------------------------------------------


def test_commands_end_with_what_they_have_started():
    begin = time.monotonic()
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    ran = Here().run(sys.executable, "-c", script, seconds=1)
    assert ran.status is None and time.monotonic() - begin < 20
    assert Here().run("no-such-program", seconds=1) is None
    assert Here().run(sys.executable, "-c", "print(1); raise SystemExit(3)", seconds=60) == Ran(3, "1\n", "")


def test_this_machine_is_read():
    here = Here()
    assert here.version("weft") is not None and here.version("no-such-distribution") is None
    assert here.has("weft") and not here.has("no_such_module") and not here.has("no_such.module")
    assert here.read(__file__).startswith('"""') and here.read("/no/such/file") is None
    assert here.matching(str(ROOT / "Make*")) == [str(ROOT / "Makefile")]


@pytest.mark.parametrize("platform", ["cpu", "wasm", "reference"])
def test_the_calculation(platform):
    if lack(platform) is not None:
        pytest.skip(f"not on this machine: {platform}: {lack(platform)}")
    made = calculate(platform)
    assert made["devices"] >= 1 and made["error"] < 1e-5


def test_wrong_numbers_are_noticed(monkeypatch):
    monkeypatch.setattr("weft.doctor.calculation.expected", lambda: (0.0, *expected()[1:]))
    with pytest.raises(RuntimeError, match="the results are wrong"):
        calculate("reference")


@pytest.mark.slow
def test_the_command_on_this_machine():
    done = subprocess.run(
        [sys.executable, "-m", "weft.doctor", "--json", "--only", "cpu,remote,reference"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {f["name"]: f["state"] for f in json.loads(done.stdout)["platforms"]} == dict.fromkeys(
        ("cpu", "remote", "reference"), "ok"
    )


def test_no_calculation_without_a_platform():
    assert Examination([], [], []).faults() == ["no platform computes"]


# the extras ----------------------------------------------------------------------------------------------------------


def extras(project: str) -> dict[str, list[str]]:
    return tomllib.loads((ROOT / project / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_extras_name_the_plugins_of_the_jaxlib_that_is_tested():
    pinned = re.search(r"^jaxlib==(.*)$", (ROOT / "constraints.txt").read_text(), re.M)[1]
    native = extras("native")
    for major in ("12", "13"):
        assert native[f"cuda{major}"] == [f"jaxlib=={pinned}", f"jax-cuda{major}-plugin[with-cuda]=={pinned}"]
        assert native[f"cuda{major}-local"] == [f"jaxlib=={pinned}", f"jax-cuda{major}-plugin=={pinned}"]
    assert native["tpu"] == [f"jaxlib=={pinned}", f"libtpu=={LIBTPU[numbers(pinned)[:2]]}.*"]


def test_the_commands_of_the_doctor_name_extras_that_exist():
    offered = extras("packages/weft")
    named = {m for command in INSTALL.values() for m in re.findall(r"weft\[(\S+?)\]", command)}
    assert named == {"cuda13", "tpu", "wasm", "webgpu"} and {*named, "cuda12"} <= set(offered)
    for extra, (requirement,) in offered.items():
        package, inner = re.fullmatch(r"(.*)\[(.*)\]", requirement).groups()
        assert inner in extras({"weft-native": "native", "weft-wasm": "wasm"}[package]), extra
