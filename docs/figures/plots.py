"""Draw the pictures of docs/plots.md with the code that stands above each of them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from matplotlib import pyplot as plt

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "plots.md"
# A block of Python, and the picture that follows it at once, if one does.
_BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n!\[[^\]]*\]\(figures/(\S+?)\))?", re.M | re.S)
# The matplotlib that drew what is committed; another puts letters and axes elsewhere.
DRAWN_WITH = "3.11"
DOTS_PER_INCH, WEBP = 110, {"quality": 88, "method": 6}


def draw(folder):
    """Run the blocks of the page up to the last picture, and write what ``ax`` shows at each."""
    blocks = _BLOCK.findall(PAGE.read_text("utf-8"))
    while not blocks[-1][1]:
        blocks.pop()
    namespace = {"__name__": "__docs__"}
    for block, picture in blocks:
        exec(compile(block, PAGE.name, "exec"), namespace)
        if picture:
            figure = namespace["ax"].figure
            figure.savefig(folder / picture, dpi=DOTS_PER_INCH, pil_kwargs=WEBP)
            plt.close(figure)
    return [picture for _, picture in blocks if picture]


if __name__ == "__main__":
    plt.switch_backend("agg")
    for name in draw(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE):
        print(name)
