"""Dockerfile, compose.yml and the Kubernetes manifests: what linters and the schemas of Kubernetes say
of them, that what they name is there, and that a node starts as they start it."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from newscrawler import settings
from tests.crawl.harness import until

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "Dockerfile"
COMPOSE = ROOT / "compose.yml"
MANIFESTS = sorted((ROOT / "deploy/kubernetes").glob("*.yaml"))
KUBERNETES = "1.34"
BIN = Path(sys.executable).parent


# ---------------------------------------------------------------- Dockerfile
def steps(text: str) -> list[tuple[str, str]]:
    """(instruction, rest) in order."""
    lines = [
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(line.split()[0], line.split(None, 1)[1]) for line in joined.splitlines()]


def hadolint(text: str, folder: Path) -> str:
    (folder / "Dockerfile").write_text(text)
    done = subprocess.run(
        [BIN / "hadolint", "--no-color", str(folder / "Dockerfile")],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.stdout


def test_hadolint_finds_nothing(tmp_path: Path) -> None:
    assert hadolint(DOCKERFILE.read_text(), tmp_path) == ""
    assert "DL" in hadolint(DOCKERFILE.read_text().replace("WORKDIR /opt", "WORKDIR opt"), tmp_path)


def test_the_image_is_of_nobody_and_says_how_it_is() -> None:
    found = steps(DOCKERFILE.read_text())
    last = max(number for number, (name, _) in enumerate(found) if name == "FROM")
    final = dict(found[last:])
    assert final["USER"].split(":")[0].isdigit() and final["USER"] != "0:0"
    assert "healthy.py" in final["HEALTHCHECK"]
    assert [name for name, _ in found].count("FROM") == 2
    assert not re.search(r"(?i)(password|secret|api_key)\s*=", DOCKERFILE.read_text())


def test_what_is_copied_is_there_and_is_sent() -> None:
    sent = [
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    ]
    copied = [rest for name, rest in steps(DOCKERFILE.read_text()) if name == "COPY"]
    sources = [s for rest in copied if "--from" not in rest for s in rest.split()[:-1]]
    assert len(sources) > 8
    for source in sources:
        assert (ROOT / source).exists(), source
        assert any(Path(source).match(pattern) for pattern in sent), f"{source} is not sent"


def test_the_image_has_what_its_settings_need() -> None:
    config = next(d for d in documents() if d["kind"] == "ConfigMap")
    assert config["data"]["RAW_STORE"].startswith("s3://")
    text = DOCKERFILE.read_text()
    assert 'ARG S3="1"' in text and "--require-hashes -r requirements-s3.lock" in text


# ---------------------------------------------------------------- compose
@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return found


def test_compose_has_all_parts_and_names_only_what_it_has(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert {
        "redis",
        "elasticsearch",
        "node-a",
        "node-b",
        "watch",
        "monitor",
        "api",
        "prometheus",
        "grafana",
    } <= (set(services))
    for name, service in services.items():
        assert "image" in service or "build" in service, name
        assert set(service.get("depends_on", {})) <= set(services), name
        assert set(service.get("networks", [])) <= set(compose["networks"]), name
        assert set(service.get("secrets", [])) <= set(compose["secrets"]), name
        for needed, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"} and "healthcheck" in services[needed]
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            known = source in compose["volumes"] or (ROOT / source).exists()
            assert known, f"{name}: {volume}"


#: What ours may have, of the specification of Compose (compose-spec.io, 05-services.md).
SERVICE_KEYS = {
    "build",
    "cap_drop",
    "command",
    "depends_on",
    "entrypoint",
    "environment",
    "healthcheck",
    "image",
    "init",
    "mem_limit",
    "networks",
    "ports",
    "profiles",
    "read_only",
    "restart",
    "secrets",
    "security_opt",
    "stop_grace_period",
    "tmpfs",
    "volumes",
}
HEALTH_KEYS = {"disable", "interval", "retries", "start_period", "test", "timeout"}


def compose_faults(found: dict[str, Any]) -> list[str]:
    """Keys that Compose does not know, which it refuses, and values of a wrong form."""
    top = {"name", "services", "networks", "volumes", "secrets"}
    faults = [key for key in found if key not in top and not key.startswith("x-")]
    for name, service in found["services"].items():
        faults += [f"{name}: {key}" for key in service if key not in SERVICE_KEYS]
        health = service.get("healthcheck", {})
        faults += [f"{name}: healthcheck {key}" for key in health if key not in HEALTH_KEYS]
        spans = [health[key] for key in ("interval", "timeout") if key in health]
        spans += [service[key] for key in ("stop_grace_period",) if key in service]
        faults += [
            f"{name}: {span}" for span in spans if not re.fullmatch(r"\d+(ms|s|m|h)", str(span))
        ]
        memory = service.get("mem_limit", "1g")
        faults += [f"{name}: {memory}"] if not re.fullmatch(r"\d+[kmg]", memory) else []
        for key, value in service.get("environment", {}).items():
            is_text = isinstance(value, str) and value.count("${") == value.count("}")
            faults += [] if is_text else [f"{name}: {key}={value!r}"]
    return faults


def test_compose_has_only_what_compose_knows(compose: dict[str, Any]) -> None:
    assert compose_faults(compose) == []
    assert not any("\t" in line for line in COMPOSE.read_text().splitlines())


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("mem_limit: 3g", "mem_limits: 3g"),
        ("mem_limit: 3g", "mem_limit: 3 GB"),
        ("stop_grace_period: 150s", "stop_grace_period: 150"),
        ("retries: 20", "retrys: 20"),
        ("secrets:\n  redis_users", "secret:\n  redis_users"),
    ],
)
def test_what_compose_would_refuse_is_found(right: str, wrong: str) -> None:
    text = COMPOSE.read_text()
    assert right in text
    found = yaml.safe_load(text.replace(right, wrong))
    assert compose_faults(found)


def test_compose_opens_nothing_but_pages_on_loopback(compose: dict[str, Any]) -> None:
    ports = {name: s["ports"] for name, s in compose["services"].items() if "ports" in s}
    assert set(ports) == {"api", "grafana"}
    assert all(port.startswith("127.0.0.1:") for all_of in ports.values() for port in all_of)
    assert compose["networks"]["inside"] == {"internal": True}
    text = COMPOSE.read_text()
    for name in ("SCRAPYD_PASSWORD", "REDIS_URL", "API_TOKEN_SECRET"):
        assert f"{name}: ${{{name}:?" in text, f"{name} must be asked for"


#: Of ours, read where they are needed and no settings: by scripts, and what is secret.
VARIABLES = {
    "ALERT_TELEGRAM_TOKEN",
    "ALERT_WEBHOOK_SECRET",
    "API_TOKEN_SECRET",
    "ARTICLE_STORE_API_KEY",
    "HEALTH_URL",
    "MAIL_PASS",
    "NODES",
    "SCRAPYD_PASSWORD",
}


def test_the_environment_of_our_containers_is_read_by_somebody(compose: dict[str, Any]) -> None:
    given = {
        name
        for service in compose["services"].values()
        if service["image"] == "newscrawler"
        for name in service["environment"]
    }
    given |= {entry["name"] for _, c in containers() for entry in c.get("env", [])}
    assert len(given) > 20
    ours = {name for name in given if name not in VARIABLES}
    assert not {name for name in ours if not hasattr(settings, name)}
    sources = [*(ROOT / "newscrawler").rglob("*.py"), *(ROOT / "deploy/container").iterdir()]
    text = "\n".join(path.read_text() for path in sources if path.is_file())
    assert not {name for name in given if not re.search(rf"\b{name}\b", text)}


def test_somebody_looks_at_the_fleet_from_outside_its_workers(compose: dict[str, Any]) -> None:
    """And can tell: by a way that leads out, and with the variables of every way."""
    monitor = compose["services"]["monitor"]
    assert monitor["command"][:3] == ["scrapy", "monitor", "--every"]
    assert "outside" in monitor["networks"] and "inside" in monitor["networks"]
    ways = {name for name in dir(settings) if name.startswith(("ALERT_", "MAIL_"))}
    ways -= {"ALERT_ACTIONS", "ALERT_TELEGRAM_URL"}
    ways = {getattr(settings, name) if name.endswith("_ENV") else name for name in ways}
    assert ways | {"MAIL_PASS"} <= set(monitor["environment"])
    [api] = [c for _, c in containers() if c["name"] == "api"]
    assert {"name": "FLEET_MONITOR_S", "value": "60"} in api["env"]
    assert {"secretRef": {"name": "alerts", "optional": True}} in api["envFrom"]


def test_images_have_versions(compose: dict[str, Any]) -> None:
    foreign = {s["image"] for s in compose["services"].values()} - {"newscrawler"}
    foreign |= {c["image"] for _, c in containers() if not c["image"].startswith("newscrawler")}
    assert len(foreign) >= 4
    assert all(re.search(r":v?\d+\.\d+", image) for image in foreign), foreign


def test_rules_and_dashboard_are_mounted_where_prometheus_and_grafana_look(
    compose: dict[str, Any],
) -> None:
    prometheus = yaml.safe_load((ROOT / "deploy/container/prometheus.yml").read_text())
    mounted = " ".join(compose["services"]["prometheus"]["volumes"])
    assert all(f":{path}:ro" in mounted for path in prometheus["rule_files"])
    provider = yaml.safe_load((ROOT / "deploy/container/dashboards.yml").read_text())["providers"][
        0
    ]
    assert f":{provider['options']['path']}:ro" in " ".join(
        compose["services"]["grafana"]["volumes"]
    )
    source = yaml.safe_load((ROOT / "deploy/container/grafana.yml").read_text())["datasources"][0]
    assert source["url"] == "http://prometheus:9090"


# ---------------------------------------------------------------- Kubernetes
def documents() -> list[dict[str, Any]]:
    return [d for path in MANIFESTS for d in yaml.safe_load_all(path.read_text())]


def containers() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(pod spec, container) of everything that runs."""
    pods = [d["spec"]["template"]["spec"] for d in documents() if "template" in d.get("spec", {})]
    return [(pod, container) for pod in pods for container in pod["containers"]]


@pytest.mark.parametrize(
    "document", documents(), ids=lambda d: f"{d['kind']}-{d['metadata']['name']}"
)
def test_kubernetes_knows_every_field(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, KUBERNETES, strict=True)


def test_a_field_that_kubernetes_does_not_know_is_found() -> None:
    wrong = next(d for d in documents() if d["kind"] == "Deployment")
    wrong["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES, strict=True)


def test_every_container_is_bounded_probed_and_nobody() -> None:
    assert len(containers()) == 3
    for pod, container in containers():
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] > 0
        closed = container["securityContext"]
        assert closed["readOnlyRootFilesystem"] and not closed["allowPrivilegeEscalation"]
        assert "memory" in container["resources"]["limits"]
        assert {"cpu", "memory"} <= set(container["resources"]["requests"])
        assert "livenessProbe" in container


def test_secrets_are_named_and_settings_are_settings() -> None:
    assert not [d for d in documents() if d["kind"] == "Secret"]
    config = next(d for d in documents() if d["kind"] == "ConfigMap")
    assert all(hasattr(settings, name) for name in config["data"]), config["data"]
    for _, container in containers():
        for entry in container.get("env", []):
            if re.search("SECRET|KEY|PASSWORD|REDIS_URL", entry["name"]):
                assert "secretKeyRef" in entry["valueFrom"], entry["name"]


def test_nothing_is_reached_that_is_not_named() -> None:
    policies = [d["spec"] for d in documents() if d["kind"] == "NetworkPolicy"]
    nothing = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert nothing in policies
    blocks = [
        to["ipBlock"] for p in policies for rule in p.get("egress", []) for to in rule["to"]
        if "ipBlock" in to
    ]  # fmt: skip
    assert blocks and all("169.254.0.0/16" in block["except"] for block in blocks)
    scaler = next(d for d in documents() if d["kind"] == "HorizontalPodAutoscaler")
    target = scaler["spec"]["scaleTargetRef"]
    workers = [d for d in documents() if d["kind"] == target["kind"]]
    assert target["name"] in {d["metadata"]["name"] for d in workers}


# ---------------------------------------------------------------- a node
def environment(folder: Path, **more: str) -> dict[str, str]:
    return {
        "PATH": f"{BIN}:/usr/bin:/bin",
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
        "NODE_DIR": str(folder / "node"),
        "SCRAPYD_ADDRESS": "127.0.0.1",
        **more,
    }


def script(name: str, env: dict[str, str], *args: str, cwd: Path = ROOT) -> Any:
    return subprocess.run(
        ["sh", f"deploy/container/{name}", *args],
        cwd=cwd, env=env, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def is_healthy(env: dict[str, str], cwd: Path = ROOT) -> bool:
    command = [sys.executable, "deploy/container/healthy.py"]
    return subprocess.run(command, cwd=cwd, env=env, timeout=120).returncode == 0


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return str(sock.getsockname()[1])


@pytest.mark.parametrize("missing", ["SCRAPYD_PASSWORD", "REDIS_URL"])
def test_a_node_without_password_or_queue_does_not_start(tmp_path: Path, missing: str) -> None:
    env = environment(tmp_path, SCRAPYD_PASSWORD="x", REDIS_URL="redis://127.0.0.1/0")
    del env[missing]
    done = script("node.sh", env)
    assert done.returncode != 0
    assert missing in done.stderr and len(done.stderr.strip().splitlines()) == 1


@pytest.fixture
def node(tmp_path: Path) -> Iterator[dict[str, str]]:
    port = free_port()
    env = environment(
        tmp_path, SCRAPYD_PASSWORD="secret-5c", REDIS_URL="redis://127.0.0.1:1/0",
        SCRAPYD_PORT=port, HEALTH_URL=f"http://127.0.0.1:{port}/daemonstatus.json",
        NODES=f"a=http://127.0.0.1:{port}/",
    )  # fmt: skip
    with (tmp_path / "node.log").open("wb") as log:
        process = subprocess.Popen(
            ["sh", "deploy/container/node.sh"], cwd=ROOT, env=env, stdout=log, stderr=log
        )
    yield env
    process.send_signal(signal.SIGTERM)
    process.wait(60)


def test_a_node_starts_is_healthy_and_asks_for_its_password(node: dict[str, str]) -> None:
    until(lambda: is_healthy(node), "the node", every_s=0.5)
    import urllib.error
    import urllib.request

    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(node["HEALTH_URL"], timeout=30)
    refused.value.close()
    assert refused.value.code == 401
    conf = Path(node["NODE_DIR"]) / "scrapyd.conf"
    assert conf.stat().st_mode & 0o077 == 0, "its password is for its user alone"
    assert not is_healthy({**node, "HEALTH_URL": "http://127.0.0.1:1/"})


# ---------------------------------------------------------------- the Dockerfile, executed
def execute(dockerfile: Path, root: Path) -> dict[str, str]:
    """Its RUN and COPY steps in a bare folder that stands for /; what is the system's (apt-get, users)
    is left to a real build. The environment of the image."""
    env = {"PATH": f"{Path(sys.executable).resolve().parent}:/usr/bin:/bin", "HOME": str(root)}
    cwd = root
    for name, rest in steps(dockerfile.read_text()):
        inside = re.sub(r"/(opt|var/lib)/newscrawler", rf"{root}/\1/newscrawler", rest)
        if name == "WORKDIR":
            cwd = Path(inside)
            cwd.mkdir(parents=True, exist_ok=True)
        elif name == "ARG":
            env.setdefault(rest.partition("=")[0], rest.partition("=")[2].strip('"'))
        elif name == "ENV":
            env |= dict(pair.split("=", 1) for pair in inside.split())
        elif name == "COPY" and "--from" in rest:
            assert Path(inside.split()[-1]).is_dir()
        elif name == "COPY":
            *sources, target = rest.split()
            for source in sources:
                place = cwd / target / (source if target.endswith("./") else "")
                copy(ROOT / source, place)
        elif name == "RUN" and not re.search("apt-get|useradd", rest):
            subprocess.run(inside, shell=True, cwd=cwd, env=env, check=True, timeout=1500)
    return env


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target if not target.is_dir() else target / source.name)


@pytest.mark.chaos
@pytest.mark.timeout(2400)
def test_the_steps_of_the_dockerfile_make_a_node_that_takes_an_egg(
    tmp_path: Path, redis_servers: Any
) -> None:
    env = execute(DOCKERFILE, tmp_path)
    home = tmp_path / "opt/newscrawler"
    port = free_port()
    env |= {
        "SCRAPYD_PASSWORD": "secret-5c", "SCRAPYD_ADDRESS": "127.0.0.1", "SCRAPYD_PORT": port,
        "NODE_DIR": str(tmp_path / "node"), "REDIS_URL": redis_servers.url("6.2"),
        "HEALTH_URL": f"http://127.0.0.1:{port}/daemonstatus.json",
        "NODES": f"a=http://127.0.0.1:{port}/",
    }  # fmt: skip
    doctor = subprocess.run(
        [home / ".venv/bin/scrapy", "doctor"], cwd=home, env=env, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert "Redis" in doctor.stdout and "Traceback" not in doctor.stderr, doctor.stderr
    with (tmp_path / "node.log").open("wb") as log:
        process = subprocess.Popen(
            ["sh", "deploy/container/node.sh"], cwd=home, env=env, stdout=log, stderr=log
        )
    try:
        until(lambda: is_healthy(env, home), "the node", every_s=0.5)
        done = script("fleet.sh", env, "deploy", cwd=home)
        assert done.returncode == 0, done.stdout + done.stderr
        assert not (home / "build").exists()
        status = script("fleet.sh", env, "status", cwd=home)
        assert "a " in status.stdout and "up" in status.stdout, status.stdout + status.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def test_a_heartbeat_of_this_host_is_health(tmp_path: Path, redis_servers: Any) -> None:
    from newscrawler.fleet.registry import WORKERS, worker_key
    from newscrawler.frontier import connect_blocking

    url = redis_servers.url("6.2")
    env = environment(tmp_path, REDIS_URL=url, HEALTH_URL="worker")
    worker = f"{socket.gethostname()}-1-healthtest"
    with connect_blocking(url) as client:
        client.zadd(WORKERS, {worker: 1})
        assert not is_healthy(env)
        client.set(worker_key(worker), "{}", ex=300)
        assert is_healthy(env)
        client.delete(worker_key(worker))
        client.zrem(WORKERS, worker)
