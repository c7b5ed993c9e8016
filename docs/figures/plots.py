"""Draw the plots of docs/how-to/report.md with the code above each of them, for both themes."""

from __future__ import annotations

import re
import sys
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

from matplotlib import pyplot as plt

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "how-to" / "report.md"
# A block of Python, and the picture that follows it at once, if one does.
_BLOCK = re.compile(
    r"^```python\n(.*?)^```$(?:\n\n!\[[^\]]*\]\(\.\./figures/(plot-\w+)-light\.webp#only-light\))?",
    re.M | re.S,
)
# The matplotlib that drew what is committed; another puts letters and axes elsewhere.
DRAWN_WITH = "3.11"
DOTS_PER_INCH, WEBP = 110, {"quality": 88, "method": 6}
THEMES = {"light": "default", "dark": "dark_background"}


def draw(folder):
    """Run the blocks of the page in each theme, and write what ``ax`` shows at each picture."""
    blocks = _BLOCK.findall(PAGE.read_text("utf-8"))
    for theme, style in THEMES.items():
        namespace = {"__name__": "__docs__"}
        with TemporaryDirectory() as reports, chdir(reports), plt.style.context(style):
            for block, picture in blocks:
                exec(compile(block, PAGE.name, "exec"), namespace)
                if picture:
                    figure = namespace["ax"].figure
                    path = folder / f"{picture}-{theme}.webp"
                    options = {"dpi": DOTS_PER_INCH, "transparent": True, "pil_kwargs": WEBP}
                    figure.savefig(path, **options)
                    plt.close(figure)
    return [f"{picture}-{theme}.webp" for theme in THEMES for _, picture in blocks if picture]


if __name__ == "__main__":
    plt.switch_backend("agg")
    print(*draw(Path(sys.argv[1] if len(sys.argv) > 1 else HERE).resolve()), sep="\n")
