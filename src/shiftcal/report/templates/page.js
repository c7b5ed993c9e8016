"use strict";
(() => {
  const tip = document.getElementById("tip");
  let lit = null;

  const hide = () => {
    tip.hidden = true;
    if (lit) { lit.classList.remove("lit"); lit = null; }
  };
  const show = (mark, x, y) => {
    if (lit !== mark) { hide(); lit = mark; mark.classList.add("lit"); }
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(Math.max(x + 14, 8), innerWidth - box.width - 8);
    const above = y - box.height - 12;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 8 ? above : y + 18}px`;
  };

  // The browser's own tips come late and not to fingers; ours take their words.
  for (const title of document.querySelectorAll("svg .mark > title, svg .area > title")) {
    const mark = title.parentNode;
    mark.dataset.tip = title.textContent;
    title.remove();
  }
  for (const drawing of document.querySelectorAll(".chart > svg")) {
    const marks = [...drawing.querySelectorAll("[data-tip]")];
    if (!marks.length) continue;
    drawing.addEventListener("pointermove", (event) => {
      const mark = event.target.closest("[data-tip]");
      if (mark) show(mark, event.clientX, event.clientY); else hide();
    });
    drawing.addEventListener("pointerdown", (event) => {
      const mark = event.target.closest("[data-tip]");
      if (mark) show(mark, event.clientX, event.clientY);
    });
    drawing.addEventListener("pointerleave", hide);
    // With the keyboard: one stop a drawing, arrows from mark to mark.
    drawing.setAttribute("tabindex", "0");
    let place = -1;
    const step = (by) => {
      place = (place + by + marks.length) % marks.length;
      const box = marks[place].getBoundingClientRect();
      show(marks[place], box.left + box.width / 2, box.top);
    };
    drawing.addEventListener("keydown", (event) => {
      if (event.key === "ArrowRight" || event.key === "ArrowDown") step(1);
      else if (event.key === "ArrowLeft" || event.key === "ArrowUp") step(-1);
      else if (event.key === "Escape") { hide(); return; }
      else return;
      event.preventDefault();
    });
    drawing.addEventListener("blur", () => { place = -1; hide(); });
  }
  addEventListener("scroll", hide, { passive: true, capture: true });

  const valueOf = (row, column) => {
    const cell = row.cells[column];
    const number = cell.querySelector("data");
    if (number) return Number(number.value);
    return cell.classList.contains("num") ? null : cell.textContent;
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      while (head.firstChild) button.append(head.firstChild);
      head.append(button);
      button.addEventListener("click", () => {
        const rising = head.getAttribute("aria-sort") === "descending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", rising ? "ascending" : "descending");
        const sign = rising ? 1 : -1;
        const rows = [...body.rows].map((row) => [valueOf(row, column), row]);
        rows.sort(([a], [b]) => {
          if (a === null || b === null) return (a === null) - (b === null);
          return sign * (typeof a === "number" && typeof b === "number"
            ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
        });
        body.append(...rows.map(([, row]) => row));
      });
    });
  }
  for (const image of document.querySelectorAll(".examples img")) {
    const enlarge = () => { if (image.naturalWidth <= 64) image.classList.add("small"); };
    if (image.complete) enlarge(); else image.addEventListener("load", enlarge);
  }
})();
