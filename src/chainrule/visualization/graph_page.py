"""Pages with a graph: one HTML file without links, which zooms, pans and searches."""

from __future__ import annotations

from html import escape


def page(svg: str, title: str, tree: str) -> str:
    """Return a page with a picture, its controls, and the graph as text."""
    return (
        _PAGE.replace("{title}", escape(title))
        .replace("{tree}", escape(tree))
        .replace("{svg}", svg)
    )


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root { color-scheme: light dark; --ink: #1d2733; --paper: #fdfdfe; --line: #c4ccd6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf1; --paper: #131a22; --line: #3a4653; } }
html, body { margin: 0; height: 100%; background: var(--paper); color: var(--ink);
  font: 14px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
body { display: flex; flex-direction: column; }
header { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; padding: 8px 12px;
  border-bottom: 1px solid var(--line); }
header h1 { font-size: 15px; margin: 0 auto 0 0; font-weight: 600; }
button, input { font: inherit; color: inherit; background: transparent; padding: 3px 9px;
  border: 1px solid var(--line); border-radius: 6px; }
#view { flex: 1; min-height: 0; overflow: hidden; cursor: grab; touch-action: none; outline: none; }
#view.dragging { cursor: grabbing; }
#view svg { transform-origin: 0 0; max-width: none !important; user-select: none; }
#found { min-width: 4.5em; font-variant-numeric: tabular-nums; }
details { border-top: 1px solid var(--line); padding: 6px 12px; max-height: 40%; overflow: auto; }
pre { margin: 6px 0; font-size: 12px; }
</style>
</head>
<body>
<header>
<h1>{title}</h1>
<input id="search" type="search" placeholder="Search ( / )" aria-label="Search">
<span id="found" role="status"></span>
<button id="out" title="Zoom out ( - )">−</button>
<button id="in" title="Zoom in ( + )">+</button>
<button id="fit" title="Whole picture ( 0 )">Fit</button>
</header>
<div id="view" tabindex="0">{svg}</div>
<details><summary>As text</summary><pre>{tree}</pre></details>
<script>
"use strict";
(function () {
  const view = document.getElementById("view"), svg = view.querySelector("svg");
  const search = document.getElementById("search"), found = document.getElementById("found");
  const width = svg.viewBox.baseVal.width, height = svg.viewBox.baseVal.height;
  svg.style.width = width + "px"; svg.style.height = height + "px";
  let scale = 1, x = 0, y = 0, hits = [], hit = -1;
  const show = () => { svg.style.transform = `translate(${x}px, ${y}px) scale(${scale})`; };
  const zoom = (factor, px, py) => {
    const next = Math.min(8, Math.max(0.02, scale * factor)), ratio = next / scale;
    x = px - (px - x) * ratio; y = py - (py - y) * ratio; scale = next; show();
  };
  const middle = factor => zoom(factor, view.clientWidth / 2, view.clientHeight / 2);
  const fit = () => {
    scale = Math.min(1.5, view.clientWidth / width, view.clientHeight / height);
    x = (view.clientWidth - width * scale) / 2; y = (view.clientHeight - height * scale) / 2;
    show();
  };
  const start = () => {  // a tall picture begins at its top, large enough to read
    fit();
    if (scale < 0.6) {
      scale = 0.8; x = (view.clientWidth - width * scale) / 2; y = 8; show();
    }
  };
  const mark = (step, from) => {
    if (hits.length) {
      hit = from === undefined ? (hit + step + hits.length) % hits.length : from;
      const box = hits[hit].getBBox();
      scale = Math.max(scale, 0.8);
      x = view.clientWidth / 2 - (box.x + box.width / 2) * scale;
      y = view.clientHeight / 2 - (box.y + box.height / 2) * scale;
      show();
    }
    found.textContent = search.value ? `${hits.length ? hit + 1 : 0} of ${hits.length}` : "";
  };
  search.addEventListener("input", () => {
    const text = search.value.trim().toLowerCase();
    hits = [];
    for (const node of svg.querySelectorAll(".cr-node")) {
      const is = text !== "" && node.textContent.toLowerCase().includes(text);
      node.classList.toggle("cr-found", is);
      if (is) hits.push(node);
    }
    mark(0, 0);
  });
  search.addEventListener("keydown", event => {
    if (event.key === "Enter") { event.preventDefault(); mark(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { search.value = ""; search.dispatchEvent(new Event("input"));
      view.focus(); }
  });
  view.addEventListener("wheel", event => {
    event.preventDefault();
    const box = view.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  view.addEventListener("pointerdown", event => {
    const startX = event.clientX - x, startY = event.clientY - y;
    const move = next => { x = next.clientX - startX; y = next.clientY - startY; show(); };
    const end = () => { view.classList.remove("dragging");
      view.removeEventListener("pointermove", move); };
    view.classList.add("dragging"); view.setPointerCapture(event.pointerId);
    view.addEventListener("pointermove", move);
    view.addEventListener("pointerup", end, { once: true });
    view.addEventListener("pointercancel", end, { once: true });
  });
  const keys = { "+": () => middle(1.25), "=": () => middle(1.25), "-": () => middle(0.8),
    "0": fit, "/": () => search.focus(),
    ArrowLeft: () => { x += 60; show(); }, ArrowRight: () => { x -= 60; show(); },
    ArrowUp: () => { y += 60; show(); }, ArrowDown: () => { y -= 60; show(); } };
  document.addEventListener("keydown", event => {
    if (event.target === search || event.ctrlKey || event.metaKey || event.altKey) return;
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
  document.getElementById("in").onclick = () => middle(1.25);
  document.getElementById("out").onclick = () => middle(0.8);
  document.getElementById("fit").onclick = fit;
  window.addEventListener("resize", start);
  start();
})();
</script>
</body>
</html>
"""
