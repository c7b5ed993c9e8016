"""A small corpus that is written, not downloaded: messages to a shop about one of four matters.

Each message is a few sentences of templates filled with words. Most words are of its matter, some
of another, and some belong to several (a refund can be about a bill or about a parcel), so that no
classifier gets all of them right. ``letters`` and ``chat`` are two ways to write: the matters are
the same, templates and a part of the words are not.
"""

from __future__ import annotations

import numpy as np

MATTERS = ("account", "bill", "fault", "parcel")
WORDS = {
    "account": "password login email profile username settings newsletter address code session",
    "bill": "invoice charge refund payment price card discount tax receipt amount",
    "fault": "screen battery noise button cable crack warranty repair charger light",
    "parcel": "delivery courier tracking box doorstep address warehouse refund van receipt",
}
# What the other way of writing says instead of some of these words.
OTHERWISE = {
    "password": "pin",
    "email": "mail",
    "profile": "page",
    "invoice": "bill",
    "charge": "fee",
    "payment": "transfer",
    "screen": "display",
    "battery": "power",
    "crack": "scratch",
    "delivery": "shipment",
    "courier": "driver",
    "box": "packet",
}
LETTERS = (
    "I am writing because the {} and the {} are not as they should be.",
    "Last week the {} was fine, but since Monday the {} has been wrong.",
    "Could you please look at my {} again?",
    "Nobody could tell me anything about the {} when I called.",
    "I have asked about the {} twice and would like an answer.",
    "The {} that I was promised does not match the {} I got.",
)
CHAT = (
    "hi, {} again, still not ok",
    "so the {} is weird and now the {} too",
    "any news on my {}?",
    "{} problem here, what do I do",
    "thanks, but the {} is the same as yesterday",
    "was told to ask here about {} or {}",
)
# Of the words of a message, how many are of another matter.
STRAY = 0.3


def corpus(
    count: int, *, seed: int, way: str = "letters", stray: float = STRAY
) -> tuple[list[str], list[str]]:
    """Messages and their matters.

    Args:
        count: How many.
        seed: Fixes them.
        way: ``"letters"`` or ``"chat"``.
        stray: The share of words that are of another matter.
    """
    rng = np.random.default_rng(seed)
    words = {matter: text.split() for matter, text in WORDS.items()}
    templates = LETTERS if way == "letters" else CHAT
    texts, matters = [], []
    for _ in range(count):
        matter = MATTERS[rng.integers(len(MATTERS))]
        chosen = rng.choice(len(templates), size=rng.integers(2, 4), replace=False)
        message = " ".join(templates[i] for i in chosen)
        while "{}" in message:
            of = matter if rng.random() >= stray else MATTERS[rng.integers(len(MATTERS))]
            word = words[of][rng.integers(len(words[of]))]
            if way == "chat":
                word = OTHERWISE.get(word, word)
            message = message.replace("{}", word, 1)
        texts.append(message)
        matters.append(matter)
    return texts, matters
