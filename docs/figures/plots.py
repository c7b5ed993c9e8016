"""Draw the plots of the how-to pages with the code above each of them, for both themes."""

from __future__ import annotations

import re
import sys
from contextlib import chdir
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from matplotlib import pyplot as plt

HERE = Path(__file__).resolve().parent
PAGES = [HERE.parent / "how-to" / name for name in ("report.md", "selective.md")]
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
    """Run the blocks of the pages in each theme, and write what ``ax`` shows at each picture."""
    drawn = []
    for page, (theme, style) in product(PAGES, THEMES.items()):
        namespace = {"__name__": "__docs__"}
        with TemporaryDirectory() as reports, chdir(reports), plt.style.context(style):
            for block, picture in _BLOCK.findall(page.read_text("utf-8")):
                exec(compile(block, page.name, "exec"), namespace)
                if picture:
                    figure = namespace["ax"].figure
                    drawn.append(f"{picture}-{theme}.webp")
                    options = {"dpi": DOTS_PER_INCH, "transparent": True, "pil_kwargs": WEBP}
                    figure.savefig(folder / drawn[-1], **options)
                    plt.close(figure)
    return drawn


if __name__ == "__main__":
    plt.switch_backend("agg")
    print(*draw(Path(sys.argv[1] if len(sys.argv) > 1 else HERE).resolve()), sep="\n")
