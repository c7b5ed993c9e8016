// Formulas: `$...$` and `$$...$$` arrive as elements of class arithmatex, delimiters included.
document$.subscribe(() => {
  for (const element of document.querySelectorAll(".arithmatex")) {
    const text = element.textContent.trim();
    katex.render(text.slice(2, -2), element, { displayMode: text.startsWith("\\[") });
  }
});
