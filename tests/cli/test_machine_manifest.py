"""`legion machine manifest` and `legion machine join --service`: each text is read by a reader of its format."""

from __future__ import annotations

import json
import plistlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # it ships no types

from legion import __version__
from legion.cli.machines.command import service_of
from legion.system.supervisors import (
    MAC_HOME,
    REMOVED_EXIT,
    ServiceHost,
    SupervisedProgram,
    launchd_plist,
    systemd_unit,
    write_service,
)
from legion.wire.errors import BadInput
from tests.cli.conftest import Ended

Run = Callable[..., Ended]


def settings(unit: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in unit.splitlines() if "=" in line and not line.startswith("#"))


@pytest.fixture
def home(tmp_path: Path) -> ServiceHost:
    return ServiceHost(
        home=tmp_path, platform="linux", systemd=True, config_home=tmp_path / ".config", path="/opt/my tools:/bin"
    )


def test_a_unit_keeps_the_runs_and_ends_with_the_membership(legion: Run):
    unit = settings(legion("machine", "manifest", "systemd", "desk").out)
    assert unit["ExecStart"] == "%h/.local/bin/legion join"
    assert unit["KillMode"] == "process"
    assert unit["Restart"] == "always"
    assert unit["RestartPreventExitStatus"] == str(REMOVED_EXIT)
    assert unit["EnvironmentFile"].startswith("-%h/")
    assert unit["Description"].endswith("desk")


def test_nothing_in_a_unit_is_expanded_that_the_person_wrote():
    argv = ("/opt/100% of $HOME/legion", "--data-dir", 'a $"b" \\c', "join")
    line = settings(systemd_unit(SupervisedProgram(name="a", argv=argv, path="/x $y/%z")))
    assert line["ExecStart"] == '"/opt/100%% of $HOME/legion" --data-dir "a $$\\"b\\" \\\\c" join'
    assert line["Environment"] == '"PATH=/x $y/%%z"'


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_accepts_the_unit(home: ServiceHost, tmp_path: Path):
    program = tmp_path / "100% of $it"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    file = tmp_path / "legion-machine-desk.service"
    file.write_text(systemd_unit(SupervisedProgram(name="desk", argv=(str(program), "join"), path=home.path)))
    tried = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(file)],
        capture_output=True,
        text=True,
        timeout=60,
        env={"XDG_RUNTIME_DIR": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        check=False,
    )
    assert "legion-machine-desk" not in tried.stderr + tried.stdout


def test_a_plist_reads_back_as_it_was_meant(legion: Run):
    read = plistlib.loads(legion("machine", "manifest", "launchd", "mini").out.encode())
    assert read["Label"] == "dev.legion.machine.mini"
    assert read["ProgramArguments"] == [f"{MAC_HOME}.local/bin/legion", "join", "--stay"]
    assert read["EnvironmentVariables"] == {"LEGION_JOIN": "LINE"}
    assert (read["RunAtLoad"], read["KeepAlive"], read["AbandonProcessGroup"]) == (True, True, True)
    strange = SupervisedProgram(name="a", argv=("/a&b/<legion>", "join"), path="/ü:'\"")
    assert plistlib.loads(launchd_plist(strange).encode())["ProgramArguments"] == ["/a&b/<legion>", "join", "--stay"]


def test_a_compose_file_keeps_the_machine_in_a_volume_and_builds_this_version(legion: Run):
    read = yaml.safe_load(legion("machine", "manifest", "compose", "desk").out)
    service = read["services"]["machine"]
    assert service["command"] == ["legion", "--data-dir", "/data", "machine", "join", "--stay"]
    assert service["volumes"] == ["data:/data"]
    assert "data" in read["volumes"]
    assert service["environment"] == {"LEGION_JOIN": "${LEGION_JOIN:-}"}
    assert f"legionary=={__version__}" in service["build"]["dockerfile_inline"]
    assert service["init"] is True


def test_a_manifest_for_kubernetes_is_a_secret_and_one_pod_with_a_volume(legion: Run):
    text = legion("machine", "manifest", "kubernetes", "gpu-1", "--image", 'my: "image"').out
    secret, stateful = yaml.safe_load_all(text)
    assert secret["stringData"] == {"LEGION_JOIN": "LINE"}
    spec = stateful["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert spec["replicas"] == 1
    assert container["image"] == 'my: "image"'
    assert container["envFrom"] == [{"secretRef": {"name": secret["metadata"]["name"]}}]
    assert container["volumeMounts"][0]["name"] == spec["volumeClaimTemplates"][0]["metadata"]["name"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    assert pod["automountServiceAccountToken"] is False


def test_json_carries_the_text(legion: Run):
    answer = json.loads(legion("machine", "manifest", "compose", "--json").out)
    assert (answer["schema"], answer["kind"], answer["name"]) == ("legion.manifest/1", "compose", "machine")
    assert answer["text"] == legion("machine", "manifest", "compose").out


@pytest.mark.parametrize(
    "words", [("podman",), ("systemd", "My Desk"), ("systemd", "a\nb"), ("compose", "-x-")], ids=str
)
def test_what_makes_no_sense_gets_one_sentence(legion: Run, words: tuple[str, ...]):
    ended = legion("machine", "manifest", *words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1


def test_join_writes_a_unit_that_starts_without_an_invitation(home: ServiceHost, tmp_path: Path):
    service = service_of("desk", tmp_path / "my data", home)
    write_service(service)
    file = tmp_path / ".config/systemd/user/legion-machine-desk.service"
    unit = settings(file.read_text())
    assert unit["ExecStart"].endswith(f'--data-dir "{tmp_path}/my data" join')
    assert unit["ExecStart"].lstrip('"').startswith("/")
    assert unit["Environment"] == '"PATH=/opt/my tools:/bin"'
    assert "EnvironmentFile" not in unit
    assert "enable --now legion-machine-desk" in service.commands[0]


def test_join_writes_an_agent_of_launchd_on_a_mac(tmp_path: Path):
    mac = ServiceHost(
        home=tmp_path, platform="darwin", systemd=False, config_home=tmp_path / ".config", path="/opt/bin:/bin"
    )
    service = service_of("mini", tmp_path / "data", mac)
    write_service(service)
    read = plistlib.loads((tmp_path / "Library/LaunchAgents/dev.legion.machine.mini.plist").read_bytes())
    assert read["ProgramArguments"][-4:] == ["--data-dir", str(tmp_path / "data"), "join", "--stay"]
    assert read["EnvironmentVariables"] == {"PATH": "/opt/bin:/bin"}
    assert service.commands[0].startswith("launchctl bootstrap gui/")


def test_join_refuses_a_service_where_no_supervisor_runs(tmp_path: Path):
    bare = ServiceHost(home=tmp_path, platform="linux", systemd=False, config_home=tmp_path, path="")
    with pytest.raises(BadInput, match="leave it out"):
        service_of("desk", tmp_path, bare)
    assert list(tmp_path.iterdir()) == []
