"""How text of a page stands out from what is behind it, as a browser draws it."""

from __future__ import annotations

# Ratios as WCAG 2 defines them, of whatever is drawn: [least ratio asked, ratio found, what].
FAINT = """JSON.stringify((() => {
  const parsed = (text) => {
    const parts = text.match(/[\\d.]+/g);
    return parts ? [...parts.slice(0, 3).map(Number), parts[3] === undefined ? 1 : +parts[3]]
      : null;
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[3] * top[i] + (1 - top[3]) * below[i]);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      if (one.namespaceURI.endsWith("svg")) continue;
      const found = parsed(getComputedStyle(one).backgroundColor);
      if (found && found[3] === 1) return found;
    }
    return parsed(getComputedStyle(document.body).backgroundColor);
  };
  const luminance = (colour) => colour.slice(0, 3).map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (element, colour) => {
    const below = behind(element);
    let opacity = colour[3];
    for (let one = element; one; one = one.parentElement) {
      opacity *= Number(getComputedStyle(one).opacity);
    }
    const seen = over([...colour.slice(0, 3), opacity], below);
    const [high, low] = [luminance(seen), luminance(below)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const found = [];
  let looked = 0;
  const look = (element, property, least) => {
    const colour = parsed(getComputedStyle(element)[property]);
    if (!colour) return;
    looked += 1;
    const seen = ratio(element, colour);
    if (seen < least) {
      found.push([least, seen, `${element.tagName}.${element.getAttribute("class")}`]);
    }
  };
  const shown = (element) => element.getClientRects().length > 0;
  for (const element of document.body.querySelectorAll("*")) {
    const text = [...element.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
    const skipped = ["TITLE", "DESC", "SCRIPT"].includes(element.tagName.toUpperCase());
    if (!text || skipped || !shown(element)) continue;
    look(element, element.tagName === "text" ? "fill" : "color", 4.5);
  }
  return { looked, found };
})())"""
