"use strict";
// The relation graph on a canvas: forces between at most some hundred notes, pan, zoom, choose, open.
const COLORS = {
  light: { entity: "#1f6552", task: "#a05a00", memory: "#3556a8", note: "#5a6560", session: "#7a3f87", bad: "#a3261b" },
  dark: { entity: "#7ccdb3", task: "#f0b35b", memory: "#93b0ff", note: "#a3afa9", session: "#d29be0", bad: "#ff9a8f" },
};

function drawGraph(canvas, data, open) {
  const names = new Map(data.nodes.map((node, at) => [node.name, at]));
  const count = data.nodes.length;
  const links = data.edges.map((edge) => [names.get(edge.from), names.get(edge.to), edge.rel]).filter(([a, b]) => a !== b);
  const degree = new Array(count).fill(0);
  for (const [a, b] of links) { degree[a]++; degree[b]++; }
  // A spiral to begin with: the same picture every time.
  const x = Float64Array.from({ length: count }, (_, at) => 26 * Math.sqrt(at + 1) * Math.cos(at * 2.399963));
  const y = Float64Array.from({ length: count }, (_, at) => 26 * Math.sqrt(at + 1) * Math.sin(at * 2.399963));
  const radius = degree.map((links_) => 4 + Math.min(10, Math.sqrt(links_) * 1.6));
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const view = { x: 0, y: 0, zoom: 1, chosen: -1, heat: 1, moved: false, frame: 0, done: false };

  function step() {
    const cell = 90, grid = new Map(), pull = 0.05 * view.heat, dx = new Float64Array(count), dy = new Float64Array(count);
    for (let at = 0; at < count; at++) {
      const key = Math.floor(x[at] / cell) * 65536 + Math.floor(y[at] / cell);
      if (grid.has(key)) grid.get(key).push(at); else grid.set(key, [at]);
    }
    for (let at = 0; at < count; at++) {
      const column = Math.floor(x[at] / cell), row = Math.floor(y[at] / cell);
      for (let i = -1; i <= 1; i++) for (let j = -1; j <= 1; j++) {
        for (const other of grid.get((column + i) * 65536 + row + j) || []) {
          if (other === at) continue;
          const far = x[at] - x[other] || 0.1 * (at - other), up = y[at] - y[other] || 0.1;
          const push = Math.min(6, 900 / (far * far + up * up)) * view.heat, length = Math.hypot(far, up);
          dx[at] += (far / length) * push;
          dy[at] += (up / length) * push;
        }
      }
      dx[at] -= x[at] * 0.004 * view.heat;
      dy[at] -= y[at] * 0.004 * view.heat;
    }
    for (const [a, b] of links) {
      const far = x[b] - x[a], up = y[b] - y[a], length = Math.hypot(far, up) || 1;
      const force = ((length - 70) / length) * pull;
      const share = degree[b] / (degree[a] + degree[b]);
      dx[a] += far * force * share * 2; dy[a] += up * force * share * 2;
      dx[b] -= far * force * (1 - share) * 2; dy[b] -= up * force * (1 - share) * 2;
    }
    for (let at = 0; at < count; at++) { x[at] += Math.max(-20, Math.min(20, dx[at])); y[at] += Math.max(-20, Math.min(20, dy[at])); }
    view.heat *= 0.985;
  }

  function size() {
    const box = canvas.getBoundingClientRect(), sharp = Math.min(window.devicePixelRatio || 1, 2);
    if (canvas.width !== Math.round(box.width * sharp)) canvas.width = Math.round(box.width * sharp);
    if (canvas.height !== Math.round(box.height * sharp)) canvas.height = Math.round(box.height * sharp);
    return { wide: box.width, high: box.height, sharp };
  }

  function fit() {
    if (!count) return;
    const { wide, high } = size();
    let left = Infinity, right = -Infinity, top = Infinity, low = -Infinity;
    for (let at = 0; at < count; at++) {
      left = Math.min(left, x[at]); right = Math.max(right, x[at]); top = Math.min(top, y[at]); low = Math.max(low, y[at]);
    }
    view.zoom = Math.min(2.2, wide / (right - left + 160), high / (low - top + 90));
    view.x = (left + right) / 2; view.y = (top + low) / 2;
  }

  function paint() {
    const { wide, high, sharp } = size(), pen = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement), paint_ = (name) => style.getPropertyValue(name).trim();
    const colors = matchMedia("(prefers-color-scheme: dark)").matches ? COLORS.dark : COLORS.light;
    pen.setTransform(sharp, 0, 0, sharp, 0, 0);
    pen.clearRect(0, 0, wide, high);
    pen.translate(wide / 2, high / 2);
    const px = (at) => (x[at] - view.x) * view.zoom, py = (at) => (y[at] - view.y) * view.zoom;
    pen.lineWidth = 1;
    for (const near of [false, true]) {
      pen.strokeStyle = near ? paint_("--strong") : paint_("--quiet");
      pen.globalAlpha = near ? 1 : 0.45;
      pen.beginPath();
      for (const [a, b] of links) {
        if ((a === view.chosen || b === view.chosen) !== near) continue;
        pen.moveTo(px(a), py(a));
        pen.lineTo(px(b), py(b));
      }
      pen.stroke();
    }
    pen.globalAlpha = 1;
    const scale = Math.max(0.45, Math.min(1.5, view.zoom));
    for (let at = 0; at < count; at++) {
      const node = data.nodes[at];
      pen.beginPath();
      pen.arc(px(at), py(at), radius[at] * scale, 0, 7);
      pen.fillStyle = ["blocked", "waiting"].includes(node.status) ? colors.bad : colors[node.kind] || colors.note;
      pen.fill();
      if (at === view.chosen) { pen.strokeStyle = paint_("--text"); pen.lineWidth = 3; pen.stroke(); }
    }
    // Names where there is room: the most linked first.
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "center";
    const taken = [], order = named();
    for (const at of order) {
      const a = px(at), b = py(at) + radius[at] * scale + 13;
      if (Math.abs(a) > wide / 2 || Math.abs(b) > high / 2) continue;
      const words = line(data.nodes[at].title || data.nodes[at].name, 26), half = pen.measureText(words).width / 2 + 4;
      if (at !== view.chosen && taken.some(([c, d, e]) => Math.abs(a - c) < half + e && Math.abs(b - d) < 15)) continue;
      taken.push([a, b, half]);
      pen.lineWidth = 3; pen.strokeStyle = paint_("--card"); pen.strokeText(words, a, b);
      pen.fillStyle = paint_("--text"); pen.fillText(words, a, b);
      if (taken.length > 60) break;
    }
    if (view.chosen >= 0) for (const [a, b, rel] of links) {
      if (a !== view.chosen && b !== view.chosen) continue;
      pen.fillStyle = paint_("--quiet");
      pen.fillText(line(rel, 20), (px(a) + px(b)) / 2, (py(a) + py(b)) / 2);
    }
  }

  const byDegree = degree.map((_, at) => at).sort((a, b) => degree[b] - degree[a]);
  function named() {
    return view.chosen < 0 ? byDegree : [view.chosen, ...byDegree];
  }

  function tick() {
    view.frame = 0;
    if (view.done || !canvas.isConnected) return;
    if (view.heat > 0.05) {
      step();
      if (!view.moved) fit();
    }
    paint();
    if (view.heat > 0.05) again();
  }
  function again() {
    if (!view.frame) view.frame = requestAnimationFrame(tick);
  }

  function at(event) {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left - box.width / 2) / view.zoom + view.x, (event.clientY - box.top - box.height / 2) / view.zoom + view.y];
  }
  function nearest(event) {
    const [a, b] = at(event);
    let best = -1, most = 18 / view.zoom;
    for (let one = 0; one < count; one++) {
      const far = Math.hypot(x[one] - a, y[one] - b);
      if (far < most) { best = one; most = far; }
    }
    return best;
  }
  function zoom(by, event) {
    view.moved = true;
    const before = event ? at(event) : [view.x, view.y];
    view.zoom = Math.max(0.05, Math.min(8, view.zoom * by));
    if (event) {
      const now = at(event);
      view.x += before[0] - now[0];
      view.y += before[1] - now[1];
    }
    again();
  }
  function choose(one) {
    view.chosen = one;
    if (one >= 0) say(data.nodes[one].title);
    again();
  }

  const touches = new Map();
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    touches.set(event.pointerId, [event.clientX, event.clientY]);
    view.pressed = [event.clientX, event.clientY];
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = touches.get(event.pointerId);
    if (!before) { canvas.title = ""; return; }
    const others = [...touches].filter(([id]) => id !== event.pointerId);
    if (others.length) {
      const [[, other]] = others;
      const was = Math.hypot(before[0] - other[0], before[1] - other[1]) || 1;
      zoom((Math.hypot(event.clientX - other[0], event.clientY - other[1]) || 1) / was);
    } else {
      view.moved = true;
      view.x -= (event.clientX - before[0]) / view.zoom;
      view.y -= (event.clientY - before[1]) / view.zoom;
    }
    touches.set(event.pointerId, [event.clientX, event.clientY]);
    again();
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => {
    touches.delete(event.pointerId);
    if (name === "pointercancel" || !view.pressed) return;
    if (Math.hypot(event.clientX - view.pressed[0], event.clientY - view.pressed[1]) > 5) return;
    const one = nearest(event);
    if (one >= 0 && one === view.chosen) open(data.nodes[one]);
    else choose(one);
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) * 0.004), event);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const pan = { ArrowLeft: [-40, 0], ArrowRight: [40, 0], ArrowUp: [0, -40], ArrowDown: [0, 40] }[event.key];
    if (pan) { view.moved = true; view.x += pan[0] / view.zoom; view.y += pan[1] / view.zoom; again(); }
    else if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "n" || event.key === "p") {
      const place = byDegree.indexOf(view.chosen) + (event.key === "n" ? 1 : -1);
      choose(byDegree[(place + count) % count] ?? -1);
    } else if (event.key === "Enter" && view.chosen >= 0) open(data.nodes[view.chosen]);
    else return;
    event.preventDefault();
  });
  new ResizeObserver(() => { if (!view.moved) fit(); again(); }).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  if (calm) { while (view.heat > 0.05) step(); }
  fit();
  again();
  return {
    zoom,
    fit() { view.moved = false; fit(); again(); },
    choose(name) { choose(names.get(name) ?? -1); },
    nodes: byDegree.map((one) => ({ ...data.nodes[one], links: degree[one] })),
  };
}
