"use strict";
// Figures as pictures: bars, and the number of notes over time.
function bars(rows) {
  if (!rows.length) return el("p", { class: "quiet" }, t("Nothing."));
  const most = Math.max(...rows.map((row) => row.count), 1);
  const parts = rows.map((row) => {
    const name = row.name === "-" || row.name === null ? t("(none)") : t(line(row.name, 60));
    return [
      el("dt", {}, name),
      el("dd", {}, el("progress", { max: most, value: row.count, "aria-label": name })),
      el("dd", {}, row.count.toLocaleString()),
    ];
  });
  return el("dl", { class: "bars" }, parts);
}

// The running total by day, drawn as steps.
function growth(rows) {
  const days = rows.map((row) => [Date.parse(row.day + "T00:00:00Z"), row.count]).filter(([at]) => !Number.isNaN(at));
  if (!days.length) return el("p", { class: "quiet" }, t("Nothing."));
  const wide = 640, high = 200, left = 44, right = 8, top = 14, low = 24;
  let total = 0;
  const points = days.map(([at, count]) => [at, (total += count)]);
  const first = points[0][0], last = Math.max(points.at(-1)[0], first + 86400000);
  const x = (at) => left + ((at - first) / (last - first)) * (wide - left - right);
  const y = (count) => high - low - (count / total) * (high - low - top);
  let path = `M${x(first)} ${y(0)}`;
  for (const [at, count] of points) path += `H${x(at).toFixed(1)}V${y(count).toFixed(1)}`;
  path += `H${wide - right}`;
  const named = `${t("Notes over time")}: ${day(new Date(first).toISOString())} – ${day(new Date(last).toISOString())}, ${total}`;
  const svg = { svg: true };
  const text = (at, up, words, anchor) => el("text", { ...svg, x: at, y: up, "text-anchor": anchor }, words);
  return el("svg", { ...svg, class: "chart", viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": named },
    el("path", { ...svg, class: "area", d: path + `V${y(0)}Z` }),
    el("path", { ...svg, class: "line", d: path }),
    el("line", { ...svg, class: "axis", x1: left, x2: wide - right, y1: y(0), y2: y(0) }),
    text(left - 6, y(0) + 4, "0", "end"),
    text(left - 6, y(total) + 8, total.toLocaleString(), "end"),
    text(left, high - 6, day(new Date(first).toISOString()), "start"),
    text(wide - right, high - 6, day(new Date(last).toISOString()), "end"));
}
