"""Headless Chromium for tests of pages, driven through a pipe; and a web server for a folder."""

from __future__ import annotations

import base64
import functools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


def chromium() -> str | None:
    """The browser, if there is one."""
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of the folder on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Page:
    """One tab: its messages go through the pipe as JSON, with a zero byte after each."""

    def __init__(self, send: int, receive: int):
        self.send, self.receive, self.count, self.rest = send, receive, 0, b""
        self.events: list[dict[str, Any]] = []
        """Everything that the browser has told, such as requests and lines of the console."""
        self.session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol; raises `RuntimeError` with the browser's error."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.send, json.dumps(message).encode() + b"\0")
        while True:
            found = self._message()
            if found.get("id") == self.count:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']}")
                return found["result"]
            self.events.append(found)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            part = os.read(self.receive, 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self.rest += part
        line, _, self.rest = self.rest.partition(b"\0")
        return json.loads(line)

    def look(self, width: int, height: int, scheme: str = "light") -> None:
        """Set the size of the window, and the colour scheme, `light` or `dark`."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression, awaited; raises `RuntimeError` if it throws."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until a JavaScript expression is true."""
        script = (
            "new Promise(done => { const look = () => { let found = false; try { found = (%s) } catch {} "
            "found ? done(true) : setTimeout(look, 30) }; look() })"
        )
        self.run(script % condition)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def requests(self) -> list[str]:
        """The addresses that the page has asked for."""
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def complaints(self) -> list[str]:
        """Errors of the console, and exceptions that nothing caught."""
        found: list[str] = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            if event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        return found


@contextmanager
def browser(path: str) -> Iterator[Page]:
    """A tab of a new headless browser with a profile of its own."""
    with tempfile.TemporaryDirectory() as profile:
        (in_read, in_write), (out_read, out_write) = os.pipe(), os.pipe()

        def prepare() -> None:
            os.setsid()
            read, write = os.dup(in_read), os.dup(out_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        process = subprocess.Popen(
            [path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
             f"--user-data-dir={profile}", "--remote-debugging-pipe"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=prepare,
        )  # fmt: skip
        os.close(in_read)
        os.close(out_write)
        try:
            yield Page(in_write, out_read)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(in_write)
            os.close(out_read)
