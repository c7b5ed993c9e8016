"""Photograph the top of the report that docs/report.md makes: ``python docs/figures/report.py``.

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


def main():
    page = (HERE.parent / "report.md").read_text("utf-8")
    code = re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec(compile(code, "docs/report.md", "exec"), {"__name__": "__docs__"})
        size = f"--window-size={WIDTH},{HEIGHT}"
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", size, "--screenshot=top.png"]
        shown = Path("report.html").resolve().as_uri()
        subprocess.run([browser, *options, shown], check=True, capture_output=True)
        picture = Image.open("top.png").convert("RGB")
        picture.save(HERE / "report.webp", quality=82, method=6)
        os.chdir(HERE)


if __name__ == "__main__":
    main()
