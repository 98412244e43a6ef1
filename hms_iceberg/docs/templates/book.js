"use strict";
// A section is a heading and what follows it up to the next one; searching hides the others.
const sections = [];
for (const article of document.querySelectorAll("article")) {
  let current = null;
  for (const element of article.children) {
    if (/^H[1-6]$/.test(element.tagName)) {
      current = { article, id: element.id, elements: [], text: article.firstElementChild.textContent };
      sections.push(current);
    }
    current.elements.push(element);
    current.text += " " + element.textContent;
  }
}
for (const section of sections) section.text = section.text.toLowerCase();

function search(words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = sections.filter((section) => wanted.every((word) => section.text.includes(word)));
  const shown = new Set(found);
  for (const section of sections) for (const element of section.elements) element.hidden = !shown.has(section);
  for (const article of document.querySelectorAll("article")) article.hidden = !found.some((each) => each.article === article);
  for (const entry of document.querySelectorAll("nav details")) {
    const here = found.filter((each) => each.article.id === entry.dataset.topic);
    entry.hidden = here.length === 0;
    entry.open = wanted.length > 0;
    for (const link of entry.querySelectorAll("li a"))
      link.parentElement.hidden = !here.some((each) => "#" + each.id === link.getAttribute("href"));
  }
  document.getElementById("told").textContent = wanted.length ? found.length + " sections" : "";
}

const field = document.getElementById("words");
field.addEventListener("input", () => search(field.value));
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== field) { event.preventDefault(); field.focus(); }
  if (event.key === "Escape") { field.value = ""; search(""); }
});
for (const block of document.querySelectorAll("pre")) {
  const button = document.createElement("button");
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.querySelector("code").textContent);
    button.textContent = "copied";
  });
  block.append(button);
}
