"""What an operator may set: on the command line, in the environment, and in a file of TOML, by the same names.

The command line comes before the environment, the environment before the file.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import ipaddress
import pathlib
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from weft.base.errors import BackendError

from .grants import MOST
from .issuer import ALGORITHMS
from .limits import GIB, Limits

PREFIX = "WEFT_HOST_"
TRUE, FALSE = ("true", "yes", "1"), ("false", "no", "0")
LARGEST = {"int": 10.0**15, "float": 10.0**9}  # of numbers that have no bound of their own
COMMAND_LINE, ENVIRONMENT, DEFAULT = "the command line", "the environment", "the default"


class SettingsError(BackendError):
    """Settings that can't be used: one problem on each line."""

    def __init__(self, problems: Sequence[str]):
        super().__init__("\n".join(problems))
        self.problems = list(problems)


def _setting(default: Any, help: str, shown: str = "", **allowed: Any) -> Any:  # a field acts as the value in it
    return field(default=default, metadata={"help": help, "shown": shown, **allowed})


@dataclass(frozen=True)
class Settings:
    """What a host is started with."""

    host: str = _setting("127.0.0.1", "interface to listen on; 127.0.0.1 is this machine only", "ADDRESS")
    port: int = _setting(8765, "port to listen on; 0 takes a free one", least=0, most=65535)
    allow_remote: bool = _setting(
        False, "listen on interfaces that other machines reach; with TLS, here or in a proxy before it"
    )
    allow_origin: tuple[str, ...] = _setting(
        (), "pages of this origin may connect, such as https://example.org; pages on loopback always may", "ORIGIN"
    )
    name: str | None = _setting(
        None,
        "the name of this host among several behind one proxy, letters, digits and hyphens: the ids of its sessions"
        " begin with it, so that the proxy finds the host of a session that is resumed",
    )
    trusted_proxy: tuple[str, ...] = _setting(
        (),
        "a proxy's address, or a network such as 10.0.0.0/8: what it says in X-Forwarded-For is where a client is",
        "ADDRESS",
    )
    token: str | None = _setting(None, "what clients must know; without it and `tokens`, one is made and printed")
    tokens: str | None = _setting(None, "a file of tokens, as `weft-host token` keeps it", "FILE")
    guesses: int = _setting(
        10,
        "wrong tokens that one address may send in a minute; behind a proxy that is not in `trusted-proxy`, all clients"
        " have its address",
        least=1,
        most=10**9,
    )
    token_connections: int = _setting(
        0, "connections that one token may open in a minute; 0 does not limit them", least=0, most=MOST
    )
    token_rate: int = _setting(
        0, "requests for programs that one token may send in a second; 0 does not limit them", least=0, most=MOST
    )
    jwt_issuer: str | None = _setting(
        None, "let in who has a JSON Web Token of this issuer: the claim `iss`, word for word", "URL"
    )
    jwt_audience: tuple[str, ...] = _setting((), "one of these must be in the claim `aud` of a JSON Web Token", "NAME")
    jwt_keys: str | None = _setting(
        None, "the issuer's public keys, as a JSON Web Key Set: a file, or a URL that begins with https", "FILE|URL"
    )
    jwt_refresh: float = _setting(
        30.0, "seconds between two fetches of the keys from a URL at least, whatever tokens come", least=1, most=86400
    )
    jwt_algorithms: tuple[str, ...] = _setting(
        ("RS256", "ES256"), "algorithms by which JSON Web Tokens may be signed", "NAME", choices=ALGORITHMS
    )
    jwt_leeway: float = _setting(
        30.0, "seconds by which the issuer's clock and the host's may differ", least=0, most=600
    )
    jwt_name: str = _setting("sub", "the claim with the name that logs show", "CLAIM")
    jwt_scope: str = _setting("scope", "the claim with the scopes: a list, or a text with spaces between them", "CLAIM")
    jwt_prefix: str = _setting(
        "weft:", "what scopes for this host begin with, such as `weft:sessions`; others do not count here", "TEXT"
    )
    jwt_quotas: str = _setting(
        "weft",
        "the claim with a token's limits: an object with `sessions`, `nice`, `rate` and `connections`",
        "CLAIM",
    )
    tls_cert: str | None = _setting(None, "speak TLS with this certificate (PEM)", "FILE")
    tls_key: str | None = _setting(None, "the key of the certificate", "FILE")
    compression: str = _setting(
        "off",
        "compress messages for clients that offer it, as browsers do; it helps on lines of less than about 10 MB a"
        " second, and costs processor time",
        choices=("off", "deflate"),
    )
    platform: str | None = _setting(None, "cpu, cuda, tpu or reference; without it, the best there is", "NAME")
    workers: str = _setting(
        "" if sys.platform == "linux" else "thread",
        "what computes: a process for each session (on the CPU), one for all, where only one can have the device (on a"
        " GPU or TPU), or a thread of the host (the only one outside Linux, and no isolation)",
        choices=("session", "device", "thread"),
    )
    sandbox: bool = _setting(
        True,
        "let the processes of sessions read no files and not use the network; without it, hosts run on systems that"
        " lack seccomp or Landlock",
    )
    coordinator: str | None = _setting(
        None,
        "where the hosts of several machines join each other, so that one session computes on the devices of all: the"
        " address of the machine with `process` 0, and a port; with `processes`, `--workers device` and `--sessions 1`",
        "ADDRESS:PORT",
    )
    processes: int = _setting(1, "how many hosts join each other", least=1, most=4096)
    process: int = _setting(0, "the number of this one among them, from 0", least=0, most=4095)
    serve: str | None = _setting(
        None,
        "answer HTTP requests for the exported programs of a folder, NAME.weft or NAME/VERSION.weft, by their names;"
        " /openapi.json describes them",
        "FOLDER",
    )
    jobs: str | None = _setting(
        None,
        "keep sessions whose clients ask for that in this folder while they are away, for `job-seconds` at most",
        "FOLDER",
    )
    job_bytes: int = _setting(16 * GIB, "bytes of all sessions in the folder of `jobs`", least=1)
    executables: str | None = _setting(
        None,
        "keep compiled programs in this folder, so that they are not compiled again when the host starts again; who can"
        " write to it can run code in the host's processes",
        "FOLDER",
    )
    executable_bytes: int = _setting(
        4 * GIB, "bytes of all programs in the folder of `executables`; those that were used last stay", least=1
    )
    batch: int = _setting(32, "requests that one call answers at most", least=1, most=1 << 16)
    drain: float = _setting(
        0.0, "seconds for which, after SIGTERM, sessions may end by themselves while no new ones begin", least=0
    )
    admin: str | None = _setting(
        None,
        "where administrators see sessions and metrics; a port alone is one of this machine. Needs a token with the"
        " scope `admin`, or on this machine the one of `token`",
        "ADDRESS:PORT",
    )
    log: str = _setting("text", "how entries of the log look: lines of text, or of JSON", choices=("text", "json"))
    audit: str | None = _setting(
        None, "a file to which each session, refusal and act of an administrator is appended, as lines of JSON", "FILE"
    )
    log_level: str = _setting(
        "warning", "the least severe entries that are logged", choices=("debug", "info", "warning", "error")
    )
    limits: Limits = Limits()


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def place(text: str) -> tuple[str, int]:
    """The address and the port of a text such as 127.0.0.1:9100, [::1]:9100, or 9100. Raises ValueError."""
    found = re.fullmatch(r"(?:(?P<name>[^][:/@\s]+):|\[(?P<six>[0-9a-fA-F:.]+)\]:|:)?(?P<port>[0-9]{1,5})", text)
    if found is None or int(found["port"]) > 65535:
        raise ValueError(f"ADDRESS:PORT, such as 127.0.0.1:9100 or [::1]:9100, or a port alone, not {text[:100]!r}")
    return found["name"] or found["six"] or "127.0.0.1", int(found["port"])


class Setting(NamedTuple):
    """One of them."""

    name: str  # the key of the file; on the command line with "--" before it
    kind: str  # int, float, bool, str, or tuple for a list of texts
    default: Any
    help: str
    shown: str  # in place of a value
    least: float
    most: float
    choices: tuple[str, ...]
    limit: bool  # of a session

    @property
    def field(self) -> str:
        return self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        return PREFIX + self.field.upper()

    @property
    def allowed(self) -> str:
        """The values that it may have, in words."""
        bounds = f"from {self.least:g}{f' to {self.most:.15g}' if self.most != LARGEST.get(self.kind) else ''}"
        match self.kind:
            case "int":
                return f"a whole number {bounds}"
            case "float":
                return f"a number {bounds}"
            case "bool":
                return "true or false"
            case "tuple":
                return f"a list of {', '.join(self.choices)}" if self.choices else "a list of texts"
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        words = {
            "FILE": "the path of a file",
            "FILE|URL": "the path of a file, or a URL",
            "FOLDER": "the path of a folder",
            "ADDRESS:PORT": "a text such as 127.0.0.1:9100",
        }
        return words.get(self.shown, "a text")

    def checked(self, value: Any) -> Any:
        """A value of TOML as the setting's. Raises ValueError."""
        kinds: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,), "tuple": (list,)}
        if not isinstance(value, kinds.get(self.kind, (str,))) or isinstance(value, bool) and self.kind != "bool":
            raise ValueError
        found: Any = value
        if self.kind == "tuple":
            if not all(isinstance(v, str) and v and (not self.choices or v in self.choices) for v in found):
                raise ValueError
            return tuple(found)
        if self.kind in ("int", "float") and not self.least <= found <= self.most:  # NaN is neither
            raise ValueError
        if self.choices and found not in self.choices or found == "" and self.name != "token":
            raise ValueError
        return float(found) if self.kind == "float" else found

    def parsed(self, text: str) -> Any:
        """A text of the command line or the environment as a value. Raises ValueError."""
        match self.kind:
            case "int":
                return self.checked(int(text))
            case "float":
                return self.checked(float(text))
            case "bool":
                if text.lower() not in TRUE + FALSE:
                    raise ValueError
                return text.lower() in TRUE
            case "tuple":
                return self.checked(text.split())
        return self.checked(text)


def _made(f: dataclasses.Field[Any], limit: bool) -> Setting:
    get = f.metadata.get
    kind = str(f.type).removesuffix(" | None").partition("[")[0]
    shown = get("shown") or ("N" if kind in ("int", "float") else f.name.upper())
    least, most, choices = get("least", 0.0), get("most", LARGEST.get(kind, 0.0)), tuple(get("choices", ()))
    return Setting(f.name.replace("_", "-"), kind, f.default, f.metadata["help"], shown, least, most, choices, limit)


SETTINGS = (
    *[_made(f, False) for f in dataclasses.fields(Settings) if f.name != "limits"],
    *[_made(f, True) for f in dataclasses.fields(Limits)],
)


class Loaded(NamedTuple):
    """Settings, and where each that is not its default comes from."""

    settings: Settings
    sources: dict[str, str]
    unknown: list[str]  # variables of the environment that look like settings and are none
    file: pathlib.Path | None


def add_to(parser: argparse.ArgumentParser) -> None:
    """An option for each setting; what is not given is left out of the result."""
    parser.add_argument(
        "--config",
        default=None,
        metavar="FILE",
        help="settings as TOML, by the names of these options (WEFT_HOST_CONFIG)",
    )
    limits = parser.add_argument_group("limits, each of one session")
    for s in SETTINGS:
        (limits if s.limit else parser).add_argument("--" + s.name, **_option(s))


def _option(s: Setting) -> dict[str, Any]:
    default = s.default if s.default not in (None, (), "") else None
    text = s.help if default is None or s.kind == "bool" else f"{s.help} (default {_word(default)})"
    if s.kind == "bool":
        return {"action": argparse.BooleanOptionalAction, "default": argparse.SUPPRESS, "help": text}

    def read(given: str) -> Any:
        try:
            return s.checked([given])[0] if s.kind == "tuple" else s.parsed(given)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{s.allowed}, not {given[:100]!r}") from None

    made = {"type": read, "default": argparse.SUPPRESS, "help": text.replace("%", "%%"), "metavar": s.shown}
    if s.choices:
        made["metavar"] = "{" + ",".join(s.choices) + "}"
    if s.kind == "tuple":
        made |= {"action": "append", "help": f"{made['help']}; may be given again"}
    return made


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else " ".join(value) if isinstance(value, tuple) else str(value)


def load(options: argparse.Namespace, environment: Mapping[str, str]) -> Loaded:
    """The settings of a parsed command line, the environment, and the file that one of them names. Raises SettingsError
    with all that is wrong.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    problems: list[str] = []
    place = options.config or environment.get(PREFIX + "CONFIG")
    path = None if place is None else pathlib.Path(place)
    if path is not None:
        for name, value in _from_file(path, problems):
            values[name], sources[name] = value, str(path)
    for s in SETTINGS:
        text = environment.get(s.variable)
        if text is not None:
            try:
                values[s.name], sources[s.name] = s.parsed(text), f"{ENVIRONMENT} ({s.variable})"
            except ValueError:
                problems.append(
                    f"the environment variable {s.variable}: {s.allowed}, not {text[:100]!r}.{_linked(text)}"
                )
        if s.field in vars(options):
            given = vars(options)[s.field]
            values[s.name], sources[s.name] = tuple(given) if s.kind == "tuple" else given, COMMAND_LINE
    if problems:
        raise SettingsError(problems)
    known = {s.variable for s in SETTINGS} | {PREFIX + "CONFIG"}
    unknown = sorted(name for name in environment if name.startswith(PREFIX) and name not in known)
    limits = {s.field: values[s.name] for s in SETTINGS if s.limit and s.name in values}
    others = {s.field: values[s.name] for s in SETTINGS if not s.limit and s.name in values}
    return Loaded(Settings(**others, limits=Limits(**limits)), sources, unknown, path)


def _linked(text: str) -> str:
    """A hint about the variables that Kubernetes makes for a service."""
    return " Kubernetes sets it for a service of this name; enableServiceLinks: false leaves it out." * ("://" in text)


def _from_file(path: pathlib.Path, problems: list[str]) -> Iterable[tuple[str, Any]]:
    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except OSError as e:
        raise SettingsError([f"{path} can't be read: {e.strerror or e}."]) from None
    except ValueError as e:  # of TOML, or of UTF-8
        raise SettingsError([f"{path} is not TOML: {e}."]) from None
    by_name = {s.name: s for s in SETTINGS}
    for key, value in found.items():
        s = by_name.get(key)
        if s is None:
            near = difflib.get_close_matches(key.replace("_", "-"), by_name, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(by_name)}."
            problems.append(f"{path}: {key[:60]!r} is no setting. {hint}")
            continue
        try:
            checked = s.checked(value)
        except ValueError:
            problems.append(f"{path}: {key}: {s.allowed}, not {str(value)[:100]!r}.")
            continue
        # Beside the file, whatever folder the host is started in.
        if s.shown in ("FILE", "FOLDER") or s.shown == "FILE|URL" and "://" not in checked:
            checked = str(path.parent / checked)
        yield key, checked


def table() -> str:
    """All settings, as Markdown."""
    lines = ["| key, `--option` | values | default | meaning |", "|---|---|---|---|"]
    for s in SETTINGS:
        default = None if s.name == "workers" else s.default  # which depends on the system
        shown = "" if default in (None, (), "") else str(default).lower() if s.kind == "bool" else _word(default)
        values = s.allowed.removesuffix(" from 0")
        lines.append(f"| `{s.name}` | {values} | {shown} | {s.help}{'; of a session' * s.limit} |")
    return "\n".join(lines) + "\n"
