// Keeps the figures of the running crawl fresh. The page is complete without it.
"use strict";

const EVERY_MS = 5000;
const numbers = new Intl.NumberFormat("en");

function show(status) {
  for (const element of document.querySelectorAll("[data-live]")) {
    const value = status[element.dataset.live];
    element.textContent = value === null || value === undefined ? "–" : numbers.format(value);
  }
  for (const dot of document.querySelectorAll("[data-live-dot]")) {
    dot.className = "dot " + (status.workers ? "on" : "off");
  }
  for (const word of document.querySelectorAll("[data-live-word]")) {
    word.textContent = status.workers ? "Crawling" : "No worker is running";
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

// Filters lie open beside the results where there is room, and folded above them where there is not.
const wide = matchMedia("(min-width: 60rem)");
function fold() {
  for (const details of document.querySelectorAll("details[data-wide-open]")) details.open = wide.matches;
}
fold();
wide.addEventListener("change", fold);
