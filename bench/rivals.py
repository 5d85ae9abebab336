"""The same translation by LiteLLM's proxy and by claude-code-router, where they can be installed: into a folder of the
moment, which goes with it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil

from bench.asking import at_once, one_by_one
from bench.report import Report, say

_LITELLM = "litellm[proxy]==1.106.2"
_ROUTER = "@musistudio/claude-code-router@2.0.0"
_INSTALL_PATIENCE = 900.0
_START_PATIENCE = 180.0
_SINGLE, _MANY = 40, 64
_KEY = "sk-bench-0123456789abcdef-not-a-key"


class _Missing(Exception):
    """It cannot be measured here; the message says why."""


def run(folder: Path, report: Report, provider: int, direct: float) -> None:
    """`direct` is how long a request takes without anybody between."""
    for name, started in (("LiteLLM's proxy", _litellm), ("claude-code-router", _router)):
        place = folder / name.partition("'")[0].lower()
        place.mkdir()
        try:
            with started(place, provider) as (port, process):
                _measure(report, name, port, process, direct)
        except (_Missing, OSError, AssertionError, subprocess.SubprocessError) as fault:
            say(f"     {name} is left out: {' '.join(str(fault).split())[:160]}")


def _measure(report: Report, name: str, port: int, process: psutil.Process, direct: float) -> None:
    one_by_one(port, _KEY, 3)
    times = one_by_one(port, _KEY, _SINGLE)
    report.value(f"{name}, one at a time: added, p50", (times.p50 - direct) * 1000, "ms")
    report.value(f"{name}, one at a time: added, p99", (times.p99 - direct) * 1000, "ms")
    report.value(f"{name}: first byte after, p50", statistics.median(times.first) * 1000, "ms")
    report.value(f"{name}, 32 at once: requests per second", _MANY / at_once(port, _KEY, _MANY), "/s")
    family = [process, *process.children(recursive=True)]
    report.value(f"{name}: memory (PSS)", sum(one.memory_full_info().pss for one in family) / 1e6, "MB")


@contextlib.contextmanager
def _litellm(folder: Path, provider: int) -> Iterator[tuple[int, psutil.Process]]:
    _installed([sys.executable, "-m", "venv", str(folder / "venv")])
    _installed([str(folder / "venv" / "bin" / "pip"), "install", "--quiet", _LITELLM])
    model = {"model": "openai/qwen3", "api_base": f"http://127.0.0.1:{provider}/v1", "api_key": "none"}
    settings = {
        "model_list": [{"model_name": "claude-sonnet-4-5", "litellm_params": model}],
        "litellm_settings": {"use_chat_completions_url_for_anthropic_messages": True},
        "general_settings": {"master_key": _KEY},
    }
    # JSON is YAML too.
    (folder / "config.yaml").write_text(json.dumps(settings))
    port = _free_port()
    argv = [str(folder / "venv" / "bin" / "litellm"), "--config", "config.yaml", "--host", "127.0.0.1"]
    with _running([*argv, "--port", str(port)], folder, port, {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}) as process:
        yield port, process


@contextlib.contextmanager
def _router(folder: Path, provider: int) -> Iterator[tuple[int, psutil.Process]]:
    npm = shutil.which("npm")
    if npm is None:
        raise _Missing("there is no npm")
    _installed([npm, "install", "--silent", "--prefix", str(folder), _ROUTER])
    port = _free_port()
    upstream = f"http://127.0.0.1:{provider}/v1/chat/completions"
    settings = {
        "HOST": "127.0.0.1",
        "PORT": port,
        "LOG": False,
        "Providers": [{"name": "bench", "api_base_url": upstream, "api_key": "none", "models": ["qwen3"]}],
        "Router": {"default": "bench,qwen3"},
    }
    (folder / ".claude-code-router").mkdir()
    (folder / ".claude-code-router" / "config.json").write_text(json.dumps(settings))
    argv = [str(folder / "node_modules" / ".bin" / "ccr"), "start"]
    with _running(argv, folder, port, {}) as process:
        yield port, process


def _installed(argv: list[str]) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_INSTALL_PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        raise _Missing("its installation takes too long") from None
    if done.returncode != 0:
        raise _Missing(f"it cannot be installed ({done.stderr.strip()[-100:]})")


@contextlib.contextmanager
def _running(argv: list[str], folder: Path, port: int, env: Mapping[str, str]) -> Iterator[psutil.Process]:
    given = {"PATH": os.environ["PATH"], "HOME": str(folder), **env}
    with (folder / "said").open("wb") as said:
        child = subprocess.Popen(argv, cwd=folder, env=given, stdout=said, stderr=said, start_new_session=True)
    try:
        _wait(lambda: _listens(port), child)
        yield psutil.Process(child.pid)
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            for one in psutil.Process(child.pid).children(recursive=True):
                one.kill()
        child.kill()
        child.wait()


def _wait(ready: Callable[[], bool], child: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_PATIENCE
    while not ready():
        if child.poll() is not None or time.monotonic() > deadline:
            raise _Missing("it does not start")
        time.sleep(0.1)


def _listens(port: int) -> bool:
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
