"""A headless Chromium that is asked through its pipe: what it loads, what it complains of, what a page measures."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_PROBLEMS = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")


def find_browser() -> str | None:
    """A Chromium on PATH."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


@dataclass
class Browser:
    """A tab.

    Attributes:
        requests: addresses that the page asked for.
        problems: errors and messages of its console.
    """

    _to: int
    _from: Any
    _session: str = ""
    _number: int = 0
    requests: list[str] = field(default_factory=list)
    problems: list[Any] = field(default_factory=list)

    def show(self, page: Path, width: int, scheme: str) -> None:
        """Loads a file in a window of a width, in the colours `light` or `dark`."""
        self.requests.clear()
        self.problems.clear()
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.ask("Page.navigate", url=page.as_uri())
        self._until("Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """What an expression of JavaScript is in the page."""
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def picture(self, file: Path) -> None:
        """Writes a picture of the whole page."""
        taken = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(taken["data"]))

    def open(self) -> None:
        """Opens the tab."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for room in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{room}.enable")

    def ask(self, method: str, **params: Any) -> Any:
        """One command, and its answer."""
        self._number += 1
        command: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._to, json.dumps(command).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]

    def _until(self, event: str) -> None:
        while self._next().get("method") != event:
            pass

    def _next(self) -> dict[str, Any]:
        data = bytearray()
        while (byte := self._from.read(1)) != b"\0":
            assert byte, "the browser has ended"
            data += byte
        message: dict[str, Any] = json.loads(data)
        method = message.get("method")
        if method == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        elif method in _PROBLEMS:
            self.problems.append(message["params"])
        return message


@contextmanager
def browser(program: str, folder: Path) -> Iterator[Browser]:
    """A browser with a tab, whose profile is in a folder."""
    their_end, to = os.pipe()
    back, its_end = os.pipe()
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={folder}"]
    # A browser of this kind is asked through its files 3 and 4.
    redirected = ["sh", "-c", f'exec "$@" 3</dev/fd/{their_end} 4>/dev/fd/{its_end}', "sh", program, *options]
    process = subprocess.Popen(
        redirected, pass_fds=(their_end, its_end), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(their_end)
    os.close(its_end)
    try:
        with open(back, "rb") as answers:
            tab = Browser(to, answers)
            tab.open()
            yield tab
    finally:
        os.close(to)
        process.terminate()
        process.wait()
