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
  const wide = 600, high = 150;
  let total = 0;
  const points = days.map(([at, count]) => [at, (total += count)]);
  const first = points[0][0], last = Math.max(points.at(-1)[0], first + 86400000);
  const x = (at) => ((at - first) / (last - first)) * wide;
  const y = (count) => high - (count / total) * high;
  let path = `M0 ${high}`;
  for (const [at, count] of points) path += `H${x(at).toFixed(1)}V${y(count).toFixed(1)}`;
  path += `H${wide}`;
  const ends = [first, last].map((at) => day(new Date(at).toISOString()));
  const svg = { svg: true };
  // The words stand below it and not in it: they keep their size at every width.
  return [
    el("svg", { ...svg, class: "chart", viewBox: `0 0 ${wide} ${high}`, preserveAspectRatio: "none", role: "img", "aria-label": `${t("Notes over time")}: ${ends.join(" – ")}, ${total}` },
      el("path", { ...svg, class: "area", d: path + `V${high}Z` }),
      el("path", { ...svg, class: "line", d: path })),
    el("p", { class: "ends quiet small" }, el("span", {}, ends[0]), el("span", {}, `${total.toLocaleString()} ${t("notes")}`), el("span", {}, ends[1])),
  ];
}
