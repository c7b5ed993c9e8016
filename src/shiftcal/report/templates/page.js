"use strict";
(() => {
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
})();
