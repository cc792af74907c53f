"""The manifests of deploy/kubernetes: objects that Kubernetes has, which fit together and the settings of a host."""

import pathlib
import re
import shutil
import subprocess

import kubernetes_validate
import pytest
import yaml
from platforms import SERVERS, need
from weft_native.host import settings
from weft_native.host.check import contradictions
from weft_native.host.drain import ANSWER_SECONDS
from weft_native.host.ids import HOST_NAME
from weft_native.host.main import parser

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy/kubernetes"
README = (ROOT / "deploy/README.md").read_text()
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
OBJECTS = [o for name in KUSTOMIZATION["resources"] for o in yaml.safe_load_all((FOLDER / name).read_text())]
GPU = yaml.safe_load((FOLDER / "gpu/gpu.yaml").read_text())
UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
JOBS_SECONDS = 5.0  # in which a host that stops writes its sessions


def found(kind: str, name: str) -> dict:
    (one,) = [o for o in OBJECTS if (o["kind"], o["metadata"]["name"]) == (kind, name)]
    return one


def pods(kind: str, name: str) -> tuple[dict, dict]:
    """What a Deployment or StatefulSet starts, and its one container."""
    spec = found(kind, name)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    return spec, container


HOSTS, HOST = pods("StatefulSet", "weft-host")
PROXIES, PROXY = pods("Deployment", "weft-proxy")


def size(text: str) -> int:
    return int(text[:-2]) * UNITS[text[-2:]]


def loaded(*containers: dict) -> settings.Loaded:
    """The settings of a host that is started so."""
    listed = {e["name"]: e for container in containers for e in container["env"]}
    names = {"metadata.name": "weft-host-0"}
    given = {
        k: e["value"] if "value" in e else names[e["valueFrom"]["fieldRef"]["fieldPath"]] for k, e in listed.items()
    }
    assert given["WEFT_HOST_CONFIG"] == "/etc/weft-host/settings/host.toml"
    given["WEFT_HOST_CONFIG"] = str(FOLDER / "host.toml")
    return settings.load(parser().parse_args([]), given)


@pytest.mark.parametrize("version", ["1.28", "1.37"])
def test_kubernetes_has_such_objects(version):
    assert len(OBJECTS) == 8 and not any("namespace" in one["metadata"] for one in OBJECTS), (
        "the kustomization gives it"
    )
    for one in OBJECTS:
        kubernetes_validate.validate(one, version, strict=True)
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate({**OBJECTS[1], "spec": {**OBJECTS[1]["spec"], "replica": 2}}, version, strict=True)


def test_the_kustomizations_name_files_that_there_are():
    listed = [*KUSTOMIZATION["resources"], *[f for made in KUSTOMIZATION["configMapGenerator"] for f in made["files"]]]
    assert {p.name for p in FOLDER.iterdir()} == {*listed, "kustomization.yaml", "gpu"}
    (image,) = KUSTOMIZATION["images"]
    assert image["name"] == HOST["image"]
    gpu = yaml.safe_load((FOLDER / "gpu/kustomization.yaml").read_text())
    assert gpu["resources"] == [".."] and gpu["patches"] == [{"path": "gpu.yaml"}]


def test_a_host_can_start_with_its_settings():
    for extra in ([], GPU["spec"]["template"]["spec"]["containers"]):
        given = loaded(HOST, *extra)
        assert given.unknown == [] and HOSTS["enableServiceLinks"] is False
        wrong = contradictions(given.settings)
        assert len(wrong) == 1 and "there is no such file. Make a token" in wrong[0], "the Secret has it"
        memory = size([*extra, HOST][0]["resources"]["limits"]["memory"])
        assert memory > given.settings.limits.total_bytes >= given.settings.limits.session_bytes
    assert given.settings.platform == "cuda" and given.settings.name == "weft-host-0"


def test_files_are_where_the_settings_have_them():
    mounts = {m["name"]: m["mountPath"] for m in HOST["volumeMounts"]}
    given = loaded(HOST).settings
    assert given.tokens == mounts["tokens"] + "/tokens.json"
    assert {given.audit, given.jobs} == {mounts["state"] + "/audit.log", mounts["state"] + "/jobs"}
    claimed = found("StatefulSet", "weft-host")["spec"]["volumeClaimTemplates"]
    (storage,) = [c["spec"]["resources"]["requests"]["storage"] for c in claimed if c["metadata"]["name"] == "state"]
    assert size(storage) > given.job_bytes
    assert set(mounts) == {v["name"] for v in HOSTS["volumes"]} | {"state"}
    assert {m["name"] for m in PROXY["volumeMounts"]} == {v["name"] for v in PROXIES["volumes"]}
    generated = {made["name"] for made in KUSTOMIZATION["configMapGenerator"]}
    volumes = [*HOSTS["volumes"], *PROXIES["volumes"]]
    assert {v["configMap"]["name"] for v in volumes if "configMap" in v} == generated
    secrets = {v["secret"]["secretName"] for v in volumes if "secret" in v}
    assert secrets == set(re.findall(r"create secret generic (\S+)", README))


def test_ports_and_labels_fit():
    given = loaded(HOST).settings
    ports = {p["name"]: p["containerPort"] for p in HOST["ports"]}
    assert ports == {"clients": given.port, "admin": settings.place(given.admin)[1]}
    probes = [HOST[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")]
    assert [(p["path"], p["port"]) for p in probes] == [("/readyz", "clients")] * 2 + [("/healthz", "clients")]
    assert min(HOST[name]["timeoutSeconds"] for name in ("startupProbe", "readinessProbe")) >= 10
    service = found("Service", "weft-host")["spec"]
    assert {p["name"]: p["port"] for p in service["ports"]} == ports and service["publishNotReadyAddresses"]
    bound = set(map(int, re.findall(r"bind :(\d+)", (FOLDER / "haproxy.cfg").read_text())))
    assert {p["containerPort"] for p in PROXY["ports"]} == bound
    assert {p["targetPort"] for p in found("Service", "weft-proxy")["spec"]["ports"]} <= {
        p["name"] for p in PROXY["ports"]
    }
    hosts, proxies = (found("NetworkPolicy", name)["spec"] for name in ("weft-host", "weft-proxy"))
    assert [[p["port"] for p in rule["ports"]] for rule in hosts["ingress"]] == [[given.port], [ports["admin"]]]
    assert hosts["egress"] == [] and "Egress" in hosts["policyTypes"], "what sessions run reaches nothing"
    assert {p["port"] for rule in proxies["ingress"] for p in rule["ports"]} == bound
    assert {p["port"] for rule in proxies["egress"] for p in rule["ports"]} == {given.port, 53}
    for kind, name in [("StatefulSet", "weft-host"), ("Deployment", "weft-proxy")]:
        labels = found(kind, name)["spec"]["template"]["metadata"]["labels"]
        assert labels == found(kind, name)["spec"]["selector"]["matchLabels"] == {"app": name}
        assert found("Service", name)["spec"]["selector"] == labels
        assert found("NetworkPolicy", name)["spec"]["podSelector"]["matchLabels"] == labels
        assert found("PodDisruptionBudget", name)["spec"]["selector"]["matchLabels"] == labels
    assert hosts["ingress"][0]["from"] == [{"podSelector": {"matchLabels": {"app": "weft-proxy"}}}]


def test_a_pod_has_the_time_that_a_host_takes_to_stop():
    given = loaded(HOST).settings
    assert HOSTS["terminationGracePeriodSeconds"] > given.drain + ANSWER_SECONDS + JOBS_SECONDS
    assert "STOPSIGNAL SIGTERM" in (ROOT / "deploy/Containerfile").read_text()


def test_a_pod_has_no_rights():
    user = re.search(r"^USER (\d+)$", (ROOT / "deploy/Containerfile").read_text(), re.M)[1]
    assert HOSTS["securityContext"]["runAsUser"] == int(user)
    for spec, container in [(HOSTS, HOST), (PROXIES, PROXY)]:
        assert spec["securityContext"]["runAsNonRoot"] and spec["automountServiceAccountToken"] is False
        assert container["securityContext"] == {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }


def test_a_gpu_is_asked_for():
    (container,) = GPU["spec"]["template"]["spec"]["containers"]
    assert container["name"] == HOST["name"] and GPU["metadata"]["namespace"] == KUSTOMIZATION["namespace"]
    for kind in ("requests", "limits"):
        assert container["resources"][kind]["nvidia.com/gpu"] == "1"


def test_the_proxy_is_configured_as_the_shipped_one(tmp_path):
    """But for the hosts' names, ports that need no rights, and where names are looked up."""
    own, shipped = ((place / "haproxy.cfg").read_text() for place in (FOLDER, FOLDER.parent))
    space = KUSTOMIZATION["namespace"]
    for name, address, more in re.findall(r"^ +server (\S+) (\S+)(.*)", own, re.M):
        assert address == f"{name}.weft-host.{space}.svc.cluster.local:8765" and HOST_NAME.fullmatch(name)
        assert not more
    names = re.findall(r"^ +server (\S+) ", own, re.M)
    count = len(names) // 3
    assert names == [f"weft-host-{k}" for k in range(count)] * 3
    assert found("StatefulSet", "weft-host")["spec"]["replicas"] <= count

    def bare(text: str) -> list[str]:
        text = re.sub(r"^resolvers pods\n(    .*\n)+", "", text, flags=re.M)
        text = re.sub(r"bind :\d+", "bind", text.replace(" resolvers pods init-addr none", ""))
        lines = [line.strip() for line in text.split("\n")]
        return [line for line in lines if line and not line.startswith(("server ", "#")) and line != "default-server"]

    assert bare(own) == bare(shipped)
    need("haproxy")
    tls = pathlib.Path(__file__).parent / "tls"
    (tmp_path / "both.pem").write_text((tls / "certificate.pem").read_text() + (tls / "key.pem").read_text())
    (tmp_path / "haproxy.cfg").write_text(own.replace("/etc/haproxy/weft-host.pem", str(tmp_path / "both.pem")))
    given = [shutil.which("haproxy", path=SERVERS), "-c", "-f", tmp_path / "haproxy.cfg"]
    checked = subprocess.run(given, capture_output=True, text=True)
    assert checked.returncode == 0 and "WARNING" not in checked.stderr, checked.stderr
