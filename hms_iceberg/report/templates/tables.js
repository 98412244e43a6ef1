"use strict";
// A click on a heading sorts its table; the field hides rows, and the articles that they lead to, without its words.
const value = (row, at) => {
  const cell = row.cells[at];
  return cell.dataset.value === undefined ? cell.textContent.trim().toLowerCase() : Number(cell.dataset.value);
};
for (const table of document.querySelectorAll("table.sorted")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, at) => {
    const button = document.createElement("button");
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") !== "descending";
      headings.forEach((each) => each.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows].map((row) => [value(row, at), row]);
      rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
      table.tBodies[0].append(...rows.map(([, row]) => row));
    });
  });
}
const field = document.getElementById("words");
if (field) field.addEventListener("input", () => {
  const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const row of document.querySelectorAll("table.sorted tbody tr")) {
    const text = row.textContent.toLowerCase();
    row.hidden = !wanted.every((word) => text.includes(word));
    found += row.hidden ? 0 : 1;
    const article = row.dataset.article && document.getElementById(row.dataset.article);
    if (article) article.hidden = row.hidden;
  }
  document.getElementById("count").textContent = wanted.length ? found + " found" : "";
});
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  await navigator.clipboard.writeText(button.previousElementSibling.textContent);
  button.textContent = "copied";
});
