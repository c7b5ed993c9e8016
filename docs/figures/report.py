"""Photograph the top of the report that docs/how-to/report.md writes, for both themes.

Needs Chromium, and Pillow.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT = 1100, 640
THEMES = {"light": "1", "dark": "0"}


def main():
    page = (HERE.parent / "how-to" / "report.md").read_text("utf-8")
    code = re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec(compile(code, "docs/how-to/report.md", "exec"), {"__name__": "__docs__"})
        shown = Path("report.html").resolve().as_uri()
        for theme, scheme in THEMES.items():
            options = [
                *("--headless", "--no-sandbox", "--hide-scrollbars", "--screenshot=top.png"),
                f"--window-size={WIDTH},{HEIGHT}",
                f"--blink-settings=preferredColorScheme={scheme}",
            ]
            subprocess.run([browser, *options, shown], check=True, capture_output=True)
            picture = Image.open("top.png").convert("RGB")
            picture.save(HERE / f"report-{theme}.webp", quality=82, method=6)
        os.chdir(HERE)


if __name__ == "__main__":
    main()
