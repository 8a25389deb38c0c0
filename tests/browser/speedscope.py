# SPDX-License-Identifier: GPL-3.0-or-later
"""Opens a file in speedscope, in a headless Chromium, as a person does: by the page's file chooser.
Then has it save what it understood (Ctrl+S), and says what that is, a fact a line:

    speedscope.py PAGE FILE [PICTURE.png]

    track TRACK
    span TRACK|NAME number total    in ns; spans of no length are not drawn, and such of one name that
                                    meet are one; one that lies within others is NAME;NAME;...
"""
import base64
import json
import os
import sys
import tempfile
import time

from chromium import Chromium

CTRL = 2


def understood(page, file, picture):
    browser = Chromium()
    try:
        with tempfile.TemporaryDirectory() as folder:
            browser.open("file://" + os.path.abspath(page))
            browser.wait("document.readyState == 'complete' && "
                         "document.querySelector('input[type=file]') != null")
            chooser = browser.call("Runtime.evaluate",
                                   expression="document.querySelector('input[type=file]')")
            browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
            browser.call("DOM.setFileInputFiles", files=[os.path.abspath(file)],
                         objectId=chooser["result"]["objectId"])
            # the buttons of its views are there once it has one
            browser.wait("document.body.innerText.includes('Left Heavy')")
            if picture:
                with open(picture, "wb") as f:
                    f.write(base64.b64decode(browser.call("Page.captureScreenshot")["data"]))
            for what in ("keyDown", "keyUp"):
                browser.call("Input.dispatchKeyEvent", type=what, key="s", code="KeyS",
                             windowsVirtualKeyCode=ord("S"), modifiers=CTRL)
            until = time.monotonic() + 60
            while not (saved := [f for f in os.listdir(folder) if f.endswith(".json")]):
                if time.monotonic() > until:
                    raise TimeoutError("speedscope saved nothing")
                time.sleep(0.05)
            with open(os.path.join(folder, saved[0]), encoding="utf-8") as f:
                return json.load(f)
    finally:
        browser.close()


saved = understood(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
# what an event's arguments are stands behind its name
names = [f["name"].split(" {")[0] for f in saved["shared"]["frames"]]
facts = []
for profile in saved["profiles"]:
    # folded stacks have no unit: samples
    ns = {"microseconds": 1000, "none": 1}[profile["unit"]]
    facts.append(f"track {profile['name']}")
    spans, open_ones = {}, []
    for event in profile["events"]:
        if event["type"] == "O":
            open_ones.append(event)
            continue
        key = ";".join(names[e["frame"]] for e in open_ones)
        number, total = spans.get(key, (0, 0))
        spans[key] = (number + 1, total + round((event["at"] - open_ones.pop()["at"]) * ns))
    if open_ones:
        sys.exit(f"{profile['name']}: spans without an end")
    for key, (number, total) in spans.items():
        facts.append(f"span {profile['name']}|{key} {number} {total}")
print("\n".join(sorted(facts)))
