"""A self-contained page: the SVG, and a few lines of script to move it about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent._pages import script_source
from adk_fluent.backends.viz._svg import escaped, to_svg
from adk_fluent.backends.viz._text import clean

if TYPE_CHECKING:
    from adk_fluent.backends.viz._diagram import Diagram

_STYLE: Final = """\
html,body{margin:0;height:100%;background:#fff}
@media (prefers-color-scheme:dark){html,body{background:#111827}}
body{display:flex;flex-direction:column}
#text{margin:12px 16px;font:14px/1.5 system-ui,sans-serif;white-space:pre-line;color:#1f2937}
@media (prefers-color-scheme:dark){#text{color:#f3f4f6}}
#view{flex:1;min-height:0;overflow:hidden;cursor:grab;touch-action:none;outline-offset:-2px}
#view svg{transform-origin:0 0;display:block}
@media print{#view{height:auto;overflow:visible}#view svg{transform:none!important}}
"""
#: What moves the picture.
SCRIPT: Final = """\
const view = document.getElementById("view"), svg = view.querySelector("svg");
let x = 0, y = 0, scale = 1, held = false;
const show = () => { svg.style.transform = `translate(${x}px,${y}px) scale(${scale})`; };
const fit = () => {
  const wide = svg.width.baseVal.value;
  scale = Math.min(1, view.clientWidth / wide);
  x = Math.max(0, (view.clientWidth - wide * scale) / 2); y = 0; show();
};
const zoom = (by, atX, atY) => {
  const next = Math.min(8, Math.max(0.05, scale * by));
  x = atX - (atX - x) * next / scale; y = atY - (atY - y) * next / scale;
  scale = next; show();
};
view.addEventListener("pointerdown", e => { held = true; view.setPointerCapture(e.pointerId); });
view.addEventListener("pointerup", () => { held = false; });
view.addEventListener("pointercancel", () => { held = false; });
view.addEventListener("pointermove", e => {
  if (held) { x += e.movementX; y += e.movementY; show(); }
});
view.addEventListener("wheel", e => {
  e.preventDefault();
  if (e.ctrlKey || e.metaKey) zoom(Math.exp(-e.deltaY / 200), e.clientX, e.clientY);
  else { x -= e.deltaX; y -= e.deltaY; show(); }
}, { passive: false });
view.addEventListener("dblclick", fit);
view.addEventListener("keydown", e => {
  const steps = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
  if (e.key in steps) { x += steps[e.key][0]; y += steps[e.key][1]; show(); }
  else if (e.key === "+") zoom(1.25, view.clientWidth / 2, view.clientHeight / 2);
  else if (e.key === "-") zoom(0.8, view.clientWidth / 2, view.clientHeight / 2);
  else if (e.key === "0") fit();
  else return;
  e.preventDefault();
});
fit();
"""
#: What the page may load and run: nothing but this very script, and styles of its own.
_POLICY: Final = (
    f"default-src 'none'; style-src 'unsafe-inline'; script-src '{script_source(SCRIPT)}'"
)


def to_html(diagram: Diagram, text: str = "") -> str:
    """The picture as a page: drag or arrow keys move it, Ctrl and the wheel or + and - zoom.

    Args:
        diagram: The picture.
        text: Lines that stand above it.
    """
    lines = "\n".join(map(clean, text.splitlines()))
    above = f'<div id="text">{escaped(lines)}</div>\n' if text else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(diagram.title)}</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>\n"
        f'{above}<div id="view" tabindex="0">\n{to_svg(diagram)}</div>\n'
        f"<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
