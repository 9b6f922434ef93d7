// Keeps the figures of the running crawl fresh, and keys for those who read without a mouse. The
// page is complete without it.
"use strict";

const EVERY_MS = 5000;
const numbers = new Intl.NumberFormat(document.documentElement.lang || "en");

function show(status) {
  for (const element of document.querySelectorAll("[data-live]")) {
    const value = status[element.dataset.live];
    element.textContent = value === null || value === undefined ? "–" : numbers.format(value);
  }
  for (const dot of document.querySelectorAll("[data-live-dot]")) {
    dot.className = "dot " + (status.workers ? "on" : "off");
  }
  for (const word of document.querySelectorAll("[data-live-word]")) {
    word.textContent = status.workers ? word.dataset.on : word.dataset.off;
  }
  // The first articles are there: leave the empty state.
  if (document.querySelector("[data-empty]") && status.articles > 0) location.reload();
}

async function refresh() {
  if (document.hidden) return;
  try {
    const answer = await fetch("/api/status", { headers: { Accept: "application/json" } });
    if (answer.ok) show(await answer.json());
  } catch {
    // the server was stopped: the last figures stay
  }
}

if (document.querySelector("[data-live]")) setInterval(refresh, EVERY_MS);

// A picture that cannot be had leaves no frame behind.
function drop(image) {
  (image.closest("figure.picture") || image).remove();
}
for (const image of document.querySelectorAll(".picture img, img.thumb")) {
  if (image.complete && image.currentSrc && !image.naturalWidth) drop(image);
  image.addEventListener("error", () => drop(image));
}

// Filters lie open beside the results where there is room, and folded above them where there is not.
const wide = matchMedia("(min-width: 60rem)");
function fold() {
  for (const details of document.querySelectorAll("details[data-wide-open]")) details.open = wide.matches;
}
fold();
wide.addEventListener("change", fold);

// ---------------------------------------------------------------- keys
const hits = [...document.querySelectorAll(".hit h2 a, .trends h2 a")];

function step(by) {
  const here = hits.indexOf(document.activeElement);
  const next = here < 0 ? (by > 0 ? 0 : hits.length - 1) : here + by;
  const link = hits[Math.max(0, Math.min(hits.length - 1, next))];
  if (!link) return;
  link.focus({ preventScroll: true });
  (link.closest("li") || link).scrollIntoView({ block: "nearest" });
}

const follow = (selector) => document.querySelector(selector)?.click();
const KEYS = {
  "/": () => document.querySelector("input[type=search]")?.select(),
  j: () => step(1),
  k: () => step(-1),
  o: () => hits.includes(document.activeElement) && document.activeElement.click(),
  n: () => follow("a[rel=next]"),
  p: () => follow("a[rel=prev]"),
  "?": () => document.getElementById("keys")?.showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest("input, textarea, select, dialog")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const run = KEYS[event.key];
  if (!run) return;
  event.preventDefault();
  run();
});
