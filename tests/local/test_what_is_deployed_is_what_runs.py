"""The image, Compose, the chart and the systemd units are well formed, and give each process its own variables and nothing more."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner
from local.deployed import CHART, DEPLOY, FULL, compose, image_environment, new_variables, package, pods, rendered
from local.documents import PAGES, snippets
from local.keda import KEDA
from own_database import DatabaseUrls

from api.cli.environment import environment
from api.cli.main import main
from deploy.procfile import ROOT
from models.settings import Settings, settings
from models.settings.providers import key_variables
from models.settings.variables import PROCESSES, holders, names_of_settings


def test_the_linter_of_dockerfiles_finds_nothing() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    if not hadolint.exists():
        pytest.skip("needs hadolint")
    done = subprocess.run([hadolint, "--no-color", DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_is_built_from_files_that_exist_and_that_its_builder_sees() -> None:
    seen = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    sources = {source for line in copies for source in line.split()}
    assert sources == seen
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_compose_is_valid() -> None:
    """Anchors are resolved before: the reader knows none."""
    text = yaml.safe_dump({"services": compose(), "volumes": {"postgres": None, "workdirs": None, "audit": None}})
    assert package("compose_spec").PyCompose.from_yaml(text).service_names() == sorted(compose())


def test_compose_starts_each_process_with_its_probe_and_the_steps_before_it() -> None:
    services = compose()
    assert [name for name in services if services[name].get("command", [""])[0] == "run"] == list(PROCESSES)
    for name in PROCESSES:
        service = services[name]
        assert service["command"] == ["run", name]
        assert service["healthcheck"]["test"] == ["CMD", "assent-health", "alive", name]
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert services["migrate"]["depends_on"]["roles"] == {"condition": "service_completed_successfully"}


@pytest.fixture
def providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[frozenset[str]]:
    """Configures all providers of docs/providers.md, and returns the variables of their keys."""
    pages = [
        json.loads(snippet.text)["providers"]
        for snippet in snippets("json", page="docs/providers.md")
        if snippet.about == "providers"
    ]
    registry = tmp_path / "providers.json"
    registry.write_text(json.dumps({"providers": [entry for entries in pages for entry in entries]}))
    monkeypatch.setenv("ASSENT_PROVIDERS", str(registry))
    settings.cache_clear()
    yield key_variables()
    settings.cache_clear()


SERVERS = {"DATABASE_URL", "DATABASE_SYSTEM_URL", "DATABASE_OWNER_URL", "REDIS_URL", "ASSENT_AUDIT_KEY_FILE"}
"""What Compose decides itself: the addresses of its own Postgres and Redis. It has the audit's key as a variable."""
PLACES = {"HOST", "PORT", "FLOWER_PORT"}
"""What a container decides itself. So does the image with its folders."""


def test_every_setting_and_key_in_the_file_of_compose_reaches_the_processes_that_need_it_and_no_other(
    providers: frozenset[str],
) -> None:
    (own,) = re.findall(r"^The Procfile itself uses a few more: (.*?) protects Flower", PAGES["docs/settings.md"], re.M | re.S)
    names = (
        {*names_of_settings().values(), *re.findall(r"`([A-Z_]+)`", own), *providers} - SERVERS - PLACES - {*image_environment()}
    )
    file = new_variables() | {name: f"the value of {name}" for name in names}
    for process in PROCESSES:
        variables = compose(file)[process]["environment"]
        assert sorted(name for name in names if process in holders(name) and variables.get(name) != file[name]) == []
        assert sorted(name for name in variables if process not in holders(name)) == []


def test_compose_leaves_out_what_its_file_does_not_have_and_keeps_the_places_of_the_image() -> None:
    text = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    for process in PROCESSES:
        variables = compose(new_variables())[process]["environment"]
        assert {*variables} <= {*new_variables(), *SERVERS}
        assert not {*text["services"][process]["environment"]} & {*image_environment()}, (
            "without a line, it would remove the image's"
        )


def test_compose_gives_each_process_what_it_needs_of_a_new_installation() -> None:
    made = new_variables()
    for name in PROCESSES:
        variables = {*compose()[name]["environment"]}
        assert [variable for variable in made if name in holders(variable) and variable not in variables] == []


def test_compose_needs_only_variables_of_a_new_installation() -> None:
    demanded = re.findall(r"\$\{(\w+)(?!:-|\w)", (DEPLOY / "compose.yaml").read_text())
    assert {*demanded} <= {name for name, value in new_variables().items() if value}


def test_the_doctor_in_compose_finds_nothing_in_a_new_installation(clean_database: DatabaseUrls, clean_redis: str) -> None:
    addresses = {"DATABASE_URL": clean_database.app, "DATABASE_SYSTEM_URL": clean_database.system, "REDIS_URL": clean_redis}
    variables = compose(new_variables())["operator"]["environment"]
    here = {name: address for name, address in addresses.items() if name in variables}
    doctor = [Path(sys.executable).with_name("assent"), "doctor", "--no-shell"]
    done = subprocess.run(doctor, cwd="/", env=image_environment() | variables | here, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "Nothing is stuck.\n")


@pytest.mark.parametrize("values", [{}, FULL], ids=["default", "full"])
@pytest.mark.parametrize("version", ["1.33", "1.36"])
def test_kubernetes_accepts_what_the_chart_makes(values: dict[str, Any], version: str) -> None:
    for item in rendered(values):
        if item["apiVersion"] == "keda.sh/v1alpha1":
            jsonschema.validate(item["spec"], KEDA[item["kind"]])
        else:
            package("kubernetes_validate").validate(item, version, strict=True)


def test_each_way_leaves_a_tool_more_time_to_end_than_its_limit() -> None:
    """A call that is cut off may have an unknown outcome."""
    limit = Settings.model_fields["tool_seconds"].default
    unit = (DEPLOY / "systemd/assent@tools.service.d/tools.conf").read_text()
    seconds = [
        pods(rendered({}))["tools"]["terminationGracePeriodSeconds"],
        int(compose()["tools"]["stop_grace_period"].removesuffix("s")),
        int(re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)[0]),
    ]
    assert [number for number in seconds if number <= limit] == []
    with pytest.raises(Exception, match="gracePeriodSeconds: must be above the time limit of a tool call, 300 s"):
        rendered({"config": {"ASSENT_TOOL_SECONDS": 300}})
    rendered({"config": {"ASSENT_TOOL_SECONDS": "300"}, "processes": {"tools": {"gracePeriodSeconds": 330}}})


def test_keda_sets_the_replicas_of_a_scaled_process_and_the_chart_those_of_the_others() -> None:
    objects = rendered(FULL)
    scaled = [item["spec"]["scaleTargetRef"]["name"] for item in objects if item["kind"] == "ScaledObject"]
    assert scaled == ["assent-deliver", "assent-tools", "assent-turns"]
    kept = [item["metadata"]["name"] for item in objects if item["kind"] == "Deployment" and "replicas" in item["spec"]]
    assert [name for name in kept if name in scaled] == []
    assert len(kept) + len(scaled) == len(PROCESSES)
    assert [item for item in rendered({}) if item["apiVersion"].startswith("keda")] == []
    with pytest.raises(Exception, match="least"):
        rendered({"scaling": {"processes": {"tools": {"least": 0}}}})


def test_sweeps_roll_over_where_several_nodes_mount_their_file() -> None:
    for mode, expected in (("ReadWriteOnce", {"type": "Recreate"}), ("ReadWriteMany", None)):
        objects = rendered({"audit": {"accessMode": mode}, "processes": {"sweeps": {"replicas": 2}}})
        [sweeps] = [
            item["spec"] for item in objects if item["kind"] == "Deployment" and item["metadata"]["name"] == "assent-sweeps"
        ]
        assert (sweeps["replicas"], sweeps.get("strategy")) == (2, expected)
        [claim] = [item["spec"] for item in objects if item["metadata"]["name"] == "assent-audit"]
        assert claim["accessModes"] == [mode]


def test_a_drained_node_takes_one_pod_of_each_process_at_a_time() -> None:
    budgets = [item for item in rendered({}) if item["kind"] == "PodDisruptionBudget"]
    components = [item["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"] for item in budgets]
    assert sorted(components) == sorted(PROCESSES)
    assert {item["spec"]["maxUnavailable"] for item in budgets} == {1}


def test_pods_accept_connections_only_at_ports_that_policies_name() -> None:
    objects = rendered(FULL)
    ports = {name: [port["name"] for port in pod["containers"][0].get("ports", [])] for name, pod in pods(objects).items()}
    assert {name for name, names in ports.items() if "http" in names} == {"web", "flower"}
    assert {name for name, names in ports.items() if "metrics" in names} == {"web", "turns", "tools"}
    policies = {item["metadata"]["name"]: item["spec"] for item in objects if item["kind"] == "NetworkPolicy"}
    rules = {name: policy.get("ingress", []) for name, policy in policies.items()}
    assert rules == {
        "assent": [],
        "assent-web": [{"ports": [{"port": "http"}]}],
        "assent-flower": [{"ports": [{"port": "http"}], "from": [{"podSelector": {}}]}],
        "assent-metrics": [{"ports": [{"port": "metrics"}], "from": [{"namespaceSelector": {}}]}],
    }
    assert "app.kubernetes.io/component" not in policies["assent"]["podSelector"]["matchLabels"]
    unnamed = rendered({"networkPolicy": {"enabled": True}})
    assert {item["metadata"]["name"] for item in unnamed if item["kind"] == "NetworkPolicy"} == {"assent", "assent-web"}


def test_helm_s_linter_finds_nothing_but_the_missing_icon() -> None:
    problems = package("helm_python").lint(str(CHART))
    assert problems["errors"] == []
    assert [problem["error"] for problem in problems["messages"]] == ["icon is recommended"]


def test_each_process_is_a_deployment_with_its_own_secret_and_nothing_more() -> None:
    deployments = pods(rendered({}))
    assert {*deployments} == {*PROCESSES}
    for name, pod in deployments.items():
        (container,) = pod["containers"]
        assert container["args"] == compose()[name]["command"]
        assert container["envFrom"] == [{"secretRef": {"name": f"assent-{name}"}}, {"configMapRef": {"name": "assent-config"}}]
        assert "env" not in container
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
    assert {name: pod["containers"][0]["args"] for name, pod in pods(rendered(FULL), "Job").items()} == {
        "migrate": ["migrate"],
        "roles": ["roles"],
    }


def test_a_setting_in_the_chart_s_values_outranks_the_secrets_of_a_new_installation() -> None:
    """Kubernetes takes the last of several values of a variable."""
    names = [*names_of_settings().values()]
    objects = rendered({"config": dict.fromkeys(names, "of the values")})
    config = {item["metadata"]["name"]: item["data"] for item in objects if item["kind"] == "ConfigMap"}
    for name, pod in pods(objects).items():
        secret = {variable: "of the Secret" for variable in new_variables() if name in holders(variable)}
        values: dict[str, str] = {}
        for source in pod["containers"][0]["envFrom"]:
            values |= config[source["configMapRef"]["name"]] if "configMapRef" in source else secret
        assert [variable for variable in names if values[variable] != "of the values"] == []
    assert [item["data"] for item in rendered({}) if item["kind"] == "ConfigMap"] == [None]


def test_each_process_reads_the_files_of_the_chart_s_values() -> None:
    objects = rendered(FULL)
    assert {item["metadata"]["name"]: item["data"] for item in objects if item["kind"] == "ConfigMap"}["assent-files"] == FULL[
        "files"
    ]
    for pod in pods(objects).values():
        assert {"name": "files", "configMap": {"name": "assent-files"}} in pod["volumes"]
        assert {"name": "files", "mountPath": "/etc/assent", "readOnly": True} in pod["containers"][0]["volumeMounts"]
    assert [name for name, pod in pods(rendered({})).items() if "files" in str(pod["volumes"])] == []


def test_no_probe_in_the_chart_needs_redis_and_start_life_and_readiness_are_told_apart() -> None:
    for name, pod in pods(rendered({})).items():
        (container,) = pod["containers"]
        probes = {kind: container[f"{kind}Probe"] for kind in ("startup", "liveness", "readiness")}
        if name == "web":
            assert [probe["httpGet"]["path"] for probe in probes.values()] == ["/healthz", "/healthz", "/readyz"]
        else:
            questions = [probe["exec"]["command"] for probe in probes.values()]
            assert questions == [["assent-health", question, name] for question in ("alive", "alive", "ready")]
        assert probes["startup"]["periodSeconds"] * probes["startup"]["failureThreshold"] == 120


def test_pods_have_no_rights_and_only_the_value_for_bubblewrap_gives_the_tools_namespaces() -> None:
    for name, pod in pods(rendered({})).items():
        assert _is_restricted(pod), name
    loosened = [name for name, pod in pods(rendered(FULL)).items() if not _is_restricted(pod)]
    assert loosened == ["tools"]
    tools = pods(rendered(FULL))["tools"]
    assert tools["hostUsers"] is False
    assert tools["containers"][0]["securityContext"]["procMount"] == "Unmasked"


def _is_restricted(pod: Mapping[str, Any]) -> bool:
    """True if a pod keeps to the Pod Security Standard `restricted`, with a root file system that it cannot write."""
    context = pod["containers"][0]["securityContext"]
    return (
        pod["securityContext"]["runAsNonRoot"] is True
        and pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        and context == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    )


def test_a_value_that_the_chart_does_not_know_is_refused() -> None:
    with pytest.raises(Exception, match="proceses"):
        rendered({"proceses": {}})


@pytest.mark.parametrize("unit", [*(f"assent@{name}.service" for name in PROCESSES), "assent-migrate.service", "assent.target"])
def test_systemd_accepts_each_unit(unit: str, tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("needs systemd-analyze")
    for path in (DEPLOY / "systemd").rglob("*.*"):
        if path.is_file():
            copy = tmp_path / path.relative_to(DEPLOY / "systemd")
            copy.parent.mkdir(exist_ok=True)
            program = str(Path(sys.executable).with_name("assent"))
            copy.write_text(path.read_text().replace("/opt/assent/bin/assent", program))
    env = os.environ | {"SYSTEMD_UNIT_PATH": f"{tmp_path}:"}
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], env=env, capture_output=True, text=True, check=False)
    ours = [line for line in done.stderr.splitlines() if "assent" in line]
    assert ours == []


def test_a_line_of_the_environment_goes_to_the_processes_that_need_it(tmp_path: Path) -> None:
    file = tmp_path / "all.env"
    lines = [
        "# all",
        "DATABASE_URL=a",
        "DATABASE_OWNER_URL=b",
        "export ANTHROPIC_API_KEY=c=d",
        "ASSENT_APP_PASSWORD=e",
        "EMPTY=",
        "",
    ]
    file.write_text("\n".join(lines))
    expected = {
        "turns": "DATABASE_URL=a\nANTHROPIC_API_KEY=c=d\n",
        "tools": "DATABASE_URL=a\n",
        "beat": "",
        "migrate": "DATABASE_OWNER_URL=b\n",
    }
    for name, output in expected.items():
        assert CliRunner().invoke(environment, ["of", name, str(file)]).output == output
    assert "PROCESS: must be one of web, " in CliRunner().invoke(environment, ["of", "db", str(file)]).output
    file.write_text("DATABASE_URL=a\nb")
    assert "a line is not NAME=VALUE" in CliRunner().invoke(environment, ["of", "web", str(file)]).output


def test_the_key_of_a_provider_goes_to_the_turns_by_the_registry_of_the_file(tmp_path: Path) -> None:
    entry = {"name": "openai", "kind": "openai", "api_key_env": "OPENAI_API_KEY", "models": ["*"]}
    (registry := tmp_path / "providers.json").write_text(json.dumps({"providers": [entry]}))
    (file := tmp_path / "all.env").write_text(f"ASSENT_PROVIDERS={registry}\nOPENAI_API_KEY=hush\n")
    assert [_lines_of(name, file) for name in ("turns", "tools")] == [
        [f"ASSENT_PROVIDERS={registry}", "OPENAI_API_KEY=hush"],
        [f"ASSENT_PROVIDERS={registry}"],
    ]
    file.write_text("ASSENT_PROVIDERS=/etc/assent/providers.json\nOPENAI_API_KEY=hush\n")
    assert (
        "/etc/assent/providers.json): cannot be read: No such file or directory. Name the file on this machine by --providers"
        in _lines_of("turns", file)[0]
    )
    assert _lines_of("turns", file, "--providers", str(registry))[1:] == ["OPENAI_API_KEY=hush"]


def test_quotes_around_a_value_are_left_out(tmp_path: Path) -> None:
    """`kubectl create secret --from-env-file` would keep them."""
    (file := tmp_path / "all.env").write_text("""ASSENT_MAIL_FROM="Assent <a@b.example>"\nASSENT_SMTP_URL='smtp://a:$b@c'\n""")
    assert _lines_of("deliver", file) == ["ASSENT_MAIL_FROM=Assent <a@b.example>", "ASSENT_SMTP_URL=smtp://a:$b@c"]
    file.write_text("""ASSENT_ISSUER_SECRETS={"corp": "x"}\n""")
    assert _lines_of("web", file) == ["""ASSENT_ISSUER_SECRETS={"corp": "x"}"""]


def _lines_of(process: str, file: Path, *options: str) -> list[str]:
    done = CliRunner(env={"ASSENT_PROVIDERS": None}).invoke(environment, ["of", process, str(file), *options])
    settings.cache_clear()
    return done.output.splitlines()


def test_every_setting_of_an_installation_s_file_reaches_the_processes_that_need_it_and_no_other(tmp_path: Path) -> None:
    names = sorted({*names_of_settings().values()} - {"ASSENT_PROVIDERS"})
    (file := tmp_path / "all.env").write_text("".join(f"{name}=x\n" for name in names))
    for process in PROCESSES:
        assert _lines_of(process, file) == [f"{name}=x" for name in names if process in holders(name)]
    assert _lines_of("migrate", file) == ["DATABASE_OWNER_URL=x"]


def test_the_roles_are_created_by_psql_with_the_script_of_this_release(tmp_path: Path) -> None:
    psql = tmp_path / "psql"
    psql.write_text('#!/bin/sh\necho "$@"\n')
    psql.chmod(0o755)
    command = [Path(sys.executable).with_name("assent"), "roles"]
    for options, name in ([], "assent"), (["--database", "trial"], "trial"):
        done = subprocess.run([*command, *options], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True)
        assert done.stdout == f"-X --quiet -d postgres -v database={name} -f {DEPLOY / 'roles.sql'}\n"
    done = subprocess.run(command, env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert "psql is not installed: install PostgreSQL's client" in done.stderr


def test_a_process_that_the_procfile_does_not_name_is_refused() -> None:
    done = CliRunner().invoke(main, ["run", "database"])
    assert "PROCESS: must be one of web, turns, tools" in done.output


def test_the_command_says_the_commit_of_its_image() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("assent"), "--version"],
        env={"ASSENT_COMMIT": "1234567"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.fullmatch(r"assent, version \S+, commit 1234567\n", done.stdout)
