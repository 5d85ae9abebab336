"""A person is told without looking, once, by their own hooks and by the web; and `legion status done` sums it up."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import queue
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from legion.wire.web import OfferDevice, RevokeDevice
from tests.support.legion import Squad, squad
from tests.support.looking import until_seen
from tests.support.push_browser import PushBrowser
from tests.support.repository import Repository

PATIENCE = 60.0


@contextlib.contextmanager
def listening() -> Iterator[tuple[str, queue.Queue[tuple[str, dict[str, str], bytes]]]]:
    """A server on loopback, and what was posted to it: path, headers, body."""
    posted: queue.Queue[tuple[str, dict[str, str], bytes]] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.put((self.path, dict(self.headers), body))
            self.send_response({"/broken": 500, "/gone": 410}.get(self.path, 200))
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", posted
    finally:
        server.shutdown()
        server.server_close()


class Ear:
    """A pipe that hooks write lines to."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        # Open for both sides from the start, so that no hook ever blocks.
        self._lines = os.fdopen(os.open(path, os.O_RDWR), "r")
        self._heard: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in self._lines:
            self._heard.put(line.strip())

    def hears(self) -> str:
        return self._heard.get(timeout=PATIENCE)

    def heard_nothing_more(self) -> bool:
        return self._heard.empty()


def hooks(ear: Ear) -> str:
    """Each leaves something running behind it, which nobody waits for."""
    command = f"sh -c 'tail -f {ear.path.parent}/config.toml & echo $LEGION_EVENT $LEGION_TICKET > {ear.path}'"
    return "[hooks]\n" + "".join(
        f"{name} = {json.dumps(command)}\n" for name in ("done", "failed", "question", "all_done")
    )


def test_hooks_hear_of_every_end_once_also_over_a_restart_and_in_quiet_hours_that_hush_all_others(tmp_path: Path):
    ear = Ear(tmp_path / "ear")
    now = datetime.now().astimezone()
    quiet = f"{(now - timedelta(hours=1)):%H:%M}-{(now + timedelta(hours=2)):%H:%M}"
    with listening() as (url, posted), contextlib.ExitStack() as started:
        settings = f'{hooks(ear)}[notify]\non = ["done", "failed"]\nquiet = "{quiet}"\nwebhook = "{url}/quiet"\n'
        one = started.enter_context(squad(tmp_path, settings=settings))
        project = one.adopt(Repository(tmp_path / "ada"))
        good = project.dispatch("good", "echo a > a.txt")
        assert [ear.hears(), ear.hears()] == [f"done {good}", "all_done"]
        one.kill()
        one.start()
        bad = project.dispatch("bad", "echo BROKEN > b.txt", max_attempts=1)
        assert [ear.hears(), ear.hears()] == [f"failed {bad}", "all_done"]
        assert ear.heard_nothing_more()
    assert posted.empty()


def test_webhook_ntfy_and_browsers_get_what_the_person_chose(tmp_path: Path):
    with listening() as (url, posted):
        # A hook that hangs keeps nothing from the others.
        hangs = f'[hooks]\nfailed = "tail -f {tmp_path}/config.toml"\n'
        settings = f'{hangs}[notify]\non = ["failed"]\nwebhook = "{url}/broken"\nntfy = "{url}/topic"\n'
        with squad(tmp_path, settings=settings) as one:
            project = one.adopt(Repository(tmp_path / "ada"))
            browser, gone = PushBrowser(), PushBrowser()
            subscribe(one, browser.subscription(f"{url}/push"))
            subscribe(one, gone.subscription(f"{url}/gone"))
            out = subscribe(one, PushBrowser().subscription(f"{url}/revoked"))
            one.client.revoke_device(RevokeDevice(id=out))
            project.until(project.dispatch("good", "echo a > a.txt"), "done")
            bad = project.dispatch("bad", "echo BROKEN > b.txt", max_attempts=1)
            all_four = sorted((posted.get(timeout=PATIENCE / 2) for _ in range(4)), key=lambda one: one[0])
            (path, _, body), (ended, _, _), (push, pushed, sealed), (topic, headers, words) = all_four
            told = json.loads(body)
            assert (path, told["schema"], told["event"], told["ticket"]) == ("/broken", "legion.news/1", "failed", bad)
            assert (told["old"], told["new"], Path(told["path"]).name) == ("landing", "failed", f"ticket-{bad}")
            assert (topic, headers["Title"]) == ("/topic", "Legion: failed")
            assert headers["Click"] == told["link"]
            assert told["link"].endswith(f"/#/ticket/{bad}")
            assert words.decode().startswith(f"Ticket {bad} failed: bad (")
            assert (push, pushed["Content-Encoding"], ended) == ("/push", "aes128gcm", "/gone")
            assert json.loads(browser.read(sealed)) == {
                "title": "Legion: ada",
                "text": words.decode(),
                "link": told["link"],
            }
            assert posted.empty()
            # A subscription that its push service calls gone is removed.
            kept = one.data.root / "web" / "push.json"
            until_seen(one, lambda: "/gone" not in kept.read_text(), "its end")


def subscribe(one: Squad, subscription: dict[str, str]) -> int:
    """Let a browser in, and subscribe it; returns the number of its device."""
    place = urlsplit(one.client.web_addresses().local)
    connection = http.client.HTTPConnection(place.netloc)
    headers = {"Legion-Page": "1", "Content-Type": "application/json"}
    code = one.client.offer_device(OfferDevice()).code
    connection.request("POST", "/web/login", json.dumps({"code": code, "name": "phone"}), headers)
    session = json.loads(connection.getresponse().read())
    device: int = session["device"]
    connection.request("POST", "/web/push", json.dumps(subscription), {**headers, "Legion-Device": session["secret"]})
    assert connection.getresponse().status == 200
    connection.close()
    return device


def test_done_sums_up_what_came_of_the_work_since_the_person_collected_whatever_their_hooks_do(tmp_path: Path):
    # Hooks that fail or are not there hold nobody up.
    with squad(tmp_path, settings='[hooks]\ndone = "/nonexistent/program"\nall_done = "false"\n') as one:
        project = one.adopt(Repository(tmp_path / "ada"))
        early = project.dispatch("early", "echo a > a.txt")
        project.until_settled()
        first = one.client.stretch(project.cwd)
        assert ([line.id for line in first.landed], first.because) == ([early], "since `legion init`")
        assert first.to_collect > 0
        project.collect()
        agent = 'if [ "$LEGION_ATTEMPT" = 1 ]; then echo BROKEN > b.txt; else echo fine > b.txt; fi'
        late = project.dispatch("late", agent)
        bad = project.dispatch("bad", "echo BROKEN > c.txt", max_attempts=1)
        project.until_settled()
        found = one.client.stretch(project.cwd)
        assert ([line.id for line in found.landed], [line.id for line in found.failed]) == ([late], [bad])
        assert (found.sent_back, found.open, found.usage.runs, found.usage.wasted_runs) == (1, 0, 3, 2)
        shown = told(one, "done", cwd=project.repository.root)
        assert "Landed: 1" in shown
        assert "Failed: 1" in shown
        assert "1 attempt was sent back." in shown
        assert "Landed: 2" in told(one, "done", "--hours", "1", cwd=project.repository.root)
        until_seen(one, lambda: "your hook for done could not be started" in one.log, "a word in the log")


def told(one: Squad, *words: str, cwd: Path) -> str:
    done = one.cli(*words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout
