"""HTML read back: its tags, and the words between them."""

from __future__ import annotations

from html.parser import HTMLParser

HOSTILE = "<script>alert('x')</script> & \"<img src=x onerror=y>\""


class Reader(HTMLParser):
    """Tags with their attributes, and the words between them."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
