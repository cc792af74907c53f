"""What an operator may set: three sources, one table, and clear words for what can't be used."""

import dataclasses
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tomllib

import pytest
from settings_page import PAGE, page
from weft_native.host import settings
from weft_native.host.check import contradictions
from weft_native.host.limits import Limits
from weft_native.host.main import parser
from weft_native.host.settings import SETTINGS, Settings, SettingsError

FIXED = pathlib.Path(__file__).parent / "tls"


def load(text=None, environment={}, arguments=(), folder=None):
    if text is not None:
        file = folder / "host.toml"
        file.write_text(text)
        arguments = [*arguments, "--config", str(file)]
    return settings.load(parser().parse_args(list(arguments)), environment)


def problems(*args, **named):
    with pytest.raises(SettingsError) as e:
        load(*args, **named)
    return e.value.problems


def test_the_command_line_comes_before_the_environment_and_that_before_the_file(tmp_path):
    text, environment = "port = 1\nbatch = 1\nsessions = 1", {"WEFT_HOST_PORT": "2", "WEFT_HOST_BATCH": "2"}
    found = load(text, environment, ["--port", "3"], tmp_path)
    assert (found.settings.port, found.settings.batch, found.settings.limits.sessions) == (3, 2, 1)
    assert found.settings.guesses == Settings().guesses
    assert found.sources == {
        "port": "the command line",
        "batch": "the environment (WEFT_HOST_BATCH)",
        "sessions": str(tmp_path / "host.toml"),
    }


def test_the_environment_names_the_file(tmp_path):
    file = tmp_path / "host.toml"
    file.write_text("port = 17")
    assert load(environment={"WEFT_HOST_CONFIG": str(file)}).settings.port == 17


def test_a_list_replaces_the_list_of_a_weaker_source(tmp_path):
    text = 'allow-origin = ["https://a.example", "https://b.example"]'
    assert load(text, folder=tmp_path).settings.allow_origin == ("https://a.example", "https://b.example")
    environment = {"WEFT_HOST_ALLOW_ORIGIN": "https://c.example  https://d.example"}
    assert load(text, environment, folder=tmp_path).settings.allow_origin == ("https://c.example", "https://d.example")
    given = ["--allow-origin", "https://e.example", "--allow-origin=https://f.example"]
    assert load(text, environment, given, tmp_path).settings.allow_origin == ("https://e.example", "https://f.example")


def test_truths_can_be_taken_back(tmp_path):
    text = "allow-remote = true\nsandbox = false"
    assert load(text, folder=tmp_path).settings.allow_remote and not load(text, folder=tmp_path).settings.sandbox
    found = load(text, {"WEFT_HOST_SANDBOX": "Yes"}, ["--no-allow-remote"], tmp_path).settings
    assert found.sandbox and not found.allow_remote
    assert not load(arguments=["--no-sandbox"]).settings.sandbox


def test_the_help_tells_the_defaults():
    """A truth has two options, of which one is the default; nothing is said of what has none."""
    text = " ".join(parser().format_help().split())
    assert "takes a free one (default 8765)" in text
    assert not [word for word in ("True", "False", "None", "()") if f"(default {word})" in text]


def test_paths_of_the_file_begin_in_its_folder(tmp_path):
    text = 'tokens = "t.json"\nserve = "/models"\njwt-keys = "keys.json"'
    found = load(text, {"WEFT_HOST_TLS_KEY": "k.pem"}, folder=tmp_path).settings
    assert found.jwt_keys == str(tmp_path / "keys.json")
    assert load('jwt-keys = "https://a.example/keys"', folder=tmp_path).settings.jwt_keys == "https://a.example/keys"
    assert (found.tokens, found.serve, found.tls_key) == (str(tmp_path / "t.json"), "/models", "k.pem")


EXAMPLES = {"int": (7, "7"), "float": (7.5, "7.5"), "bool": (True, "true"), "tuple": (("a", "b"), "a b")}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.name)
def test_each_setting_has_three_sources(setting, tmp_path):
    value, text = EXAMPLES.get(setting.kind, ("/x", "/x"))
    if setting.choices:
        value = text = setting.choices[-1]
        value = (value,) if setting.kind == "tuple" else value
    written = json.dumps(list(value) if isinstance(value, tuple) else value)
    option = [f"--{setting.name}"] if value is True else [f"--{setting.name}={p}" for p in text.split()]
    for found in (
        load(f"{setting.name} = {written}", folder=tmp_path),
        load(environment={setting.variable: text}),
        load(arguments=option),
    ):
        assert {**vars(found.settings), **vars(found.settings.limits)}[setting.field] == value
    assert (
        len({s.name for s in SETTINGS})
        == len(SETTINGS)
        == len(dataclasses.fields(Settings) + dataclasses.fields(Limits)) - 1
    )


WRONG = {
    "prot = 1": "'prot' is no setting. Did you mean 'port'?",
    "session_bytes = 1": "'session_bytes' is no setting. Did you mean 'session-bytes'?",
    "zzz = 1": "'zzz' is no setting. There are: host, port, allow-remote,",
    "[limits]\nsessions = 1": "'limits' is no setting.",
    'port = "8765"': "port: a whole number from 0 to 65535, not '8765'.",
    "port = 65536": "port: a whole number from 0 to 65535, not '65536'.",
    "port = true": "port: a whole number from 0 to 65535, not 'True'.",
    "port = 1.0": "port: a whole number from 0 to 65535, not '1.0'.",
    "guesses = 0": "guesses: a whole number from 1 to 1000000000, not '0'.",
    "sessions = 0": "sessions: a whole number from 1, not '0'.",
    "seconds = nan": "seconds: a number from 0.1, not 'nan'.",
    "seconds = inf": "seconds: a number from 0.1, not 'inf'.",
    "grace = -1": "grace: a number from 0, not '-1'.",
    "allow-remote = 1": "allow-remote: true or false, not '1'.",
    'allow-origin = "https://a.example"': "allow-origin: a list of texts, not 'https://a.example'.",
    "allow-origin = [1]": "allow-origin: a list of texts, not '[1]'.",
    'workers = "many"': "workers: one of session, device, thread, not 'many'.",
    'tokens = ""': "tokens: the path of a file, not ''.",
}


@pytest.mark.parametrize("text", WRONG, ids=lambda t: t.replace("\n", " "))
def test_what_a_file_may_not_say(text, tmp_path):
    (problem,) = problems(text, folder=tmp_path)
    assert problem.startswith(f"{tmp_path / 'host.toml'}: {WRONG[text]}")


def test_all_that_is_wrong_is_named_at_once(tmp_path):
    found = problems("port = -1\nprot = 2", {"WEFT_HOST_BATCH": "many", "WEFT_HOST_SANDBOX": "2"}, (), tmp_path)
    assert [p.split(": ")[1] for p in found[:1]] == ["port"] and "'prot'" in found[1]
    assert found[2:] == [
        "the environment variable WEFT_HOST_SANDBOX: true or false, not '2'.",
        "the environment variable WEFT_HOST_BATCH: a whole number from 1 to 65536, not 'many'.",
    ]


def test_files_that_are_none(tmp_path):
    assert problems("port = = 1", folder=tmp_path)[0].startswith(f"{tmp_path / 'host.toml'} is not TOML: ")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    assert "is not TOML" in problems(arguments=["--config", str(tmp_path / "bytes.toml")])[0]
    assert problems(arguments=["--config", str(tmp_path / "none")]) == [
        f"{tmp_path / 'none'} can't be read: No such file or directory."
    ]


def test_variables_that_kubernetes_sets():
    (problem,) = problems(environment={"WEFT_HOST_PORT": "tcp://10.0.0.1:8765"})
    assert (
        problem.startswith("the environment variable WEFT_HOST_PORT: a whole number")
        and "enableServiceLinks" in problem
    )
    assert load(environment={"WEFT_HOST_SERVICE_HOST": "10.0.0.1", "HOME": "/"}).unknown == ["WEFT_HOST_SERVICE_HOST"]


JOINED = dict(coordinator="127.0.0.1:1", processes=2, workers="device", limits=Limits(sessions=1))


@pytest.mark.parametrize(
    "more, match",
    [
        (dict(), None),
        (dict(coordinator="10.0.0.1:1", allow_remote=True), None),
        (dict(coordinator="10.0.0.1:1"), "Add --allow-remote if the network is one that you trust"),
        (dict(coordinator="nowhere"), "--coordinator: "),
        (dict(process=2), "--processes, 2 or more, and --process from 0; here are 2 and 2"),
        (dict(processes=1), "here are 1 and 0"),
        (dict(workers="session"), "add --workers device"),
        (dict(limits=Limits()), "add --sessions 1"),
        (dict(jobs="folder"), "--jobs is not for hosts that have joined others"),
        (dict(executables="folder"), "--executables is not for hosts that have joined others"),
        (dict(coordinator=None), "name it too"),
    ],
)
def test_hosts_that_join_each_other(more, match):
    found = contradictions(Settings(**{**JOINED, **more}))
    assert (found == []) if match is None else (len(found) == 1 and match in found[0]), found


def test_the_page_has_the_settings():
    """If this fails: python tests/remote/settings_page.py"""
    text = PAGE.read_text()
    assert page(text) == text
    for name in [s.name for s in SETTINGS]:
        assert f"| `{name}` |" in text


def test_the_page_shows_settings_that_there_are(tmp_path):
    shown = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.S)
    assert shown
    for text in shown:
        load(text, folder=tmp_path)
        assert tomllib.loads(text)


def test_settings_that_do_not_fit_together(tmp_path):
    wrong = lambda **named: contradictions(Settings(**named))
    assert wrong() == []
    assert "--allow-remote" in wrong(host="0.0.0.0")[0] and wrong(host="0.0.0.0", allow_remote=True) == []
    assert wrong(host="localhost") == wrong(host="::1") == []
    assert wrong(tls_cert="a")[0] == wrong(tls_key="a")[0] == "--tls-cert and --tls-key belong together."
    assert "there is no such file" in wrong(tokens=str(tmp_path))[0]
    assert "there is no such folder" in wrong(serve=str(tmp_path / "none"))[0]
    assert len(wrong(token="", host="0.0.0.0", tls_cert="a")) == 3


def command(*arguments, **environment):
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_HOST")}
    line = [sys.executable, "-W", "ignore", "-m", "weft_native.host", *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, env={**inherited, **environment})


def test_the_command_checks_settings(tmp_path):
    """It says where each comes from, what was found, and what the host would do."""
    token = command("token", "new", "alice", "--file", str(tmp_path / "tokens.json")).stdout.strip()
    file = tmp_path / "host.toml"
    (tmp_path / "models").mkdir()
    file.write_text(
        f'port = 0\nplatform = "reference"\ntokens = "tokens.json"\nserve = "models"\ntoken = "sesame"\n'
        f'jobs = "kept"\naudit = "audit.log"\n'
        f'tls-cert = "{FIXED / "certificate.pem"}"\ntls-key = "{FIXED / "key.pem"}"'
    )
    done = command(
        "check", "--config", str(file), "--batch", "3", "--queue", "7", WEFT_HOST_SESSIONS="4", WEFT_HOST_COLOUR="red"
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    for words in (
        f"settings: {file}",
        "batch = 3   from the command line",
        "sessions = 4   from the environment (WEFT_HOST_SESSIONS)",
        "token = (not shown)",
        "WEFT_HOST_COLOUR is no setting",
        "tokens.json has 1 tokens that are good, and 0 that have expired",
        "is a certificate, and",
        "publishes no program yet",
        f"sessions can be kept in {tmp_path / 'kept'}",
        f"ok     {tmp_path / 'audit.log'} can be written",
        "127.0.0.1 has free ports",
        "a worker has started, with 1 device: reference",
        "would listen on wss://127.0.0.1:0",
        "4 sessions and 7 clients that wait take 131 open files at most",
        "have 4 sessions at most",
        "and let 7 clients more wait",
        "3 in one call at most",
    ):
        assert words in done.stdout, (words, done.stdout)
    assert "sesame" not in done.stdout + done.stderr and token not in done.stdout


def test_the_command_names_what_is_wrong(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for name in ("cert", "key", "tokens", "none"):
            (tmp_path / name).write_text("nothing")
        (tmp_path / "models").mkdir()
        (tmp_path / "models" / "f.weft").write_text("nothing")
        options = {"tls-cert": "cert", "tls-key": "key", "tokens": "tokens", "serve": "models"}
        options |= {"jobs": "none/jobs", "audit": "none/audit.log"}
        flags = [x for k, v in options.items() for x in (f"--{k}", str(tmp_path / v))]
        done = command("check", "--port", str(port), "--platform", "nonsense", *flags)
    assert done.returncode == 1
    wrong = [line for line in done.stdout.split("\n") if line.startswith("WRONG")]
    for line, words in zip(
        wrong,
        (
            "is no file of tokens",
            "are not a certificate",
            "none/jobs can't be written",
            "none/audit.log can't be written: its folder must be there",
            f"127.0.0.1:{port}: Address",
            "unknown platform",
        ),
        strict=True,
    ):
        assert words in line
    assert "f.weft is not served" in done.stderr and "The host could not start so." in done.stdout


@pytest.mark.parametrize("subcommand", [(), ("check",)])
def test_wrong_settings_end_the_command(subcommand, tmp_path):
    (tmp_path / "host.toml").write_text("prot = 1\nbatch = 0")
    done = command(*subcommand, "--config", str(tmp_path / "host.toml"))
    assert done.returncode == 2 and done.stderr.count("weft-host: ") == 2 and "Did you mean 'port'" in done.stderr
    done = command(*subcommand, "--port", "many")
    assert done.returncode == 2 and "argument --port: a whole number from 0 to 65535, not 'many'" in done.stderr
