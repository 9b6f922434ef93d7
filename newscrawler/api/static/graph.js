// Zoom, moving and hovering of the link graph. Without it the graph is whole, and its pages are links.
(() => {
  const svg = document.getElementById("graph");
  if (!svg) return;
  const box = svg.viewBox.baseVal;
  const name = document.getElementById("graph-name");
  const zoom = (factor, x = box.x + box.width / 2, y = box.y + box.height / 2) => {
    if (box.width * factor < 40 || box.width * factor > 40000) return;
    box.x = x - (x - box.x) * factor;
    box.y = y - (y - box.y) * factor;
    box.width *= factor;
    box.height *= factor;
  };
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.hidden = false;
    button.addEventListener("click", () => zoom(Number(button.dataset.zoom)));
  }
  const at = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const point = at(event);
    zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, point.x, point.y);
  }, { passive: false });
  let held = null;
  svg.addEventListener("pointerdown", (event) => { held = at(event); });
  addEventListener("pointerup", () => { held = null; });
  svg.addEventListener("pointermove", (event) => {
    if (!held || !event.buttons) return;
    const point = at(event);
    box.x += held.x - point.x;
    box.y += held.y - point.y;
  });
  const lines = [...svg.querySelectorAll("line")];
  const show = (circle) => {
    const number = circle ? circle.dataset.n : null;
    svg.classList.toggle("chosen", number !== null);
    for (const line of lines) line.classList.toggle("on", number !== null && (line.dataset.a === number || line.dataset.b === number));
    name.textContent = circle ? circle.querySelector("title").textContent : "";
  };
  for (const event of ["pointerover", "focusin"]) svg.addEventListener(event, (e) => show(e.target.closest("a")?.querySelector("circle") ?? null));
})();
