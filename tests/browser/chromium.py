# SPDX-License-Identifier: GPL-3.0-or-later
"""A headless Chromium, spoken to by its DevTools protocol over a pair of pipes: JSON, each message
ended by a NUL. No port is opened, and nothing but Python's own modules is needed."""
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Chromium:
    def __init__(self, program="chromium"):
        self.folder = tempfile.mkdtemp(prefix="kvmsim-chromium-")
        to_it, self.to = os.pipe()
        self.come, from_it = os.pipe()
        # --remote-debugging-pipe reads descriptor 3 and writes 4: a shell puts them there
        self.it = subprocess.Popen(
            ["sh", "-c", f'exec 3<&{to_it} 4>&{from_it}; exec "$@" 2>"$0"', self.folder + "/errors",
             program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe",
             "--user-data-dir=" + self.folder + "/profile", "about:blank"],
            pass_fds=(to_it, from_it), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        os.close(to_it)
        os.close(from_it)
        self.bytes, self.number, self.session = b"", 0, None

    def message(self, until):
        """The next message; what it is that was not there by then, as an error."""
        while b"\0" not in self.bytes:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.come], [], [], left)[0]:
                raise TimeoutError("Chromium says nothing")
            some = os.read(self.come, 1 << 16)
            if not some:
                with open(self.folder + "/errors", encoding="utf-8", errors="replace") as f:
                    raise EOFError("Chromium ended: " + f.read()[-2000:])
            self.bytes += some
        text, self.bytes = self.bytes.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, seconds=60, **params):
        self.number += 1
        text = {"id": self.number, "method": method, "params": params}
        if self.session:
            text["sessionId"] = self.session
        os.write(self.to, json.dumps(text).encode() + b"\0")
        until = time.monotonic() + seconds
        while True:
            answer = self.message(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, url):
        """Opens a page, which what follows is about."""
        self.session = None
        page = self.call("Target.createTarget", url=url)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]

    def evaluate(self, text):
        answer = self.call("Runtime.evaluate", expression=text, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", text))
        return answer["result"].get("value")

    def wait(self, text, seconds=60):
        """Waits until an expression is true, and returns its value."""
        until = time.monotonic() + seconds
        while not (value := self.evaluate(text)):
            if time.monotonic() > until:
                raise TimeoutError(f"waited for {text}; the page has: "
                                   + self.evaluate("document.body.innerText")[:300])
            time.sleep(0.05)
        return value

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, EOFError, TimeoutError):
            self.it.kill()
        self.it.wait()
        os.close(self.to)
        os.close(self.come)
        shutil.rmtree(self.folder, ignore_errors=True)
