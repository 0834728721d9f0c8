"use strict";
// Navigation, and the views that show the store as a whole.
const VIEWS = [
  ["overview", "Overview", viewOverview], ["search", "Search", viewSearch], ["graph", "Graph", viewGraph],
  ["blockers", "Blockers", viewBlockers], ["conflicts", "Conflicts", viewConflicts], ["devices", "Devices", viewDevices],
];

async function viewOverview() {
  const [data, past, recent] = await Promise.all([ask("overview"), ask("sessions"), ask("recent")]);
  const { status, figures } = data;
  document.getElementById("place").replaceChildren(document.createTextNode(clean(status.store)));
  const total = figures.kinds.reduce((sum, row) => sum + row.count, 0);
  const tile = (count, word) => el("div", { class: "tile" }, el("b", {}, count.toLocaleString()), t(line(word, 30)));
  const needs = status.needs.length ? el("ul", { class: "plain" }, status.needs.map((text) => el("li", { class: "bad" }, line(text))))
    : el("p", { class: "quiet" }, t("Nothing waits for you."));
  const sessions = past.sessions.map((row) => el("li", {}, noteLink(row.path, row.title),
    el("div", { class: "quiet small" }, [moment(row.updated), [row.agent, row.device].filter(Boolean).join("@")].filter(Boolean).join(" · "))));
  const left = source.offline && [el("p", { class: "quiet" }, `${t("A file made at")} ${moment(source.offline.made)}.`,
    source.offline.left_out > 0 && ` ${source.offline.left_out} ${t("more notes are only counted.")}`)];
  const none = el("p", { class: "quiet" }, t("Nothing."));
  const wide = card(t("Growth"), growth(figures.growth));
  wide.classList.add("wide");
  return [
    el("h1", {}, t("Overview")), left,
    el("div", { class: "tiles" }, tile(total, "Notes"), figures.kinds.slice(0, 5).map((row) => tile(row.count, row.name || "-"))),
    el("div", { class: "grid" }, wide, card(t("Needs a person"), needs)),
    el("div", { class: "columns" },
      card(t("Memory types"), bars(figures.types)),
      card(t("Tiers"), bars(figures.tiers)),
      card(t("Recent sessions"), sessions.length ? el("ul", { class: "plain" }, sessions) : none),
      card(t("Changed last"), el("ul", { class: "plain" }, recent.notes.slice(0, 8).map((row) => noteRow(row)))),
      card(t("Scopes"), bars(figures.scopes)),
      card(t("Tags"), bars(figures.tags))),
  ];
}

async function viewGraph(given) {
  const asked = Object.fromEntries(["kind", "type", "rel", "around"].map((name) => [name, given.get(name) || ""]));
  const [data, all] = await Promise.all([ask("graph", asked), ask("overview")]);
  const go = (name, value) => {
    const next = new URLSearchParams(Object.entries({ ...asked, [name]: value }).filter(([, one]) => one));
    location.hash = "#/graph?" + next;
  };
  const select = (name, values, label) => el("label", { class: "field" }, t(label),
    el("select", { name, onchange: (event) => go(name, event.target.value) },
      ["", ...new Set([...values, asked[name]].filter(Boolean))].map((value) => el("option", { value, selected: asked[name] === value }, t(line(value || "all", 40))))));
  const types = [...new Set(data.nodes.map((node) => node.type).filter(Boolean))].sort();
  const out = [el("h1", {}, t("Graph")), el("form", { class: "ask", onsubmit: (event) => event.preventDefault() },
    select("kind", ["entity", "task", "memory", "note", "session"], "Kind"), select("type", types, "Type"),
    select("rel", all.figures.relations.map((row) => row.name), "Relation"),
    asked.around && el("button", { type: "button", onclick: () => go("around", "") }, t("Show all")))];
  if (!data.nodes.length) return [...out, el("p", {}, t("No relations yet."))];
  const canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": `${t("The relation graph")}: ${data.nodes.length} ${t("notes")}, ${data.edges.length} ${t("links")}`, "aria-describedby": "how" });
  const picture = drawGraph(canvas, data, (node) => { location.hash = "#/note/" + encodeURIComponent(node.path); });
  const button = (label, sign, work) => el("button", { type: "button", "aria-label": t(label), onclick: work }, sign);
  const counted = data.cut ? `${t("Shown are the most linked")}: ${data.nodes.length} ${t("of")} ${data.total}.` : `${data.nodes.length} ${t("notes")}, ${data.edges.length} ${t("links")}.`;
  const key = ["entity", "task", "memory", "note", "session"].filter((kind) => data.nodes.some((node) => node.kind === kind)).map((kind) => {
    const colors = matchMedia("(prefers-color-scheme: dark)").matches ? COLORS.dark : COLORS.light;
    const svg = { svg: true };
    return el("li", {}, el("svg", { ...svg, viewBox: "0 0 8 8", "aria-hidden": "true" }, el("circle", { ...svg, cx: 4, cy: 4, r: 4, fill: colors[kind] })), t(kind));
  });
  out.push(el("div", { class: "row" }, button("Zoom in", "+", () => picture.zoom(1.3)), button("Zoom out", "−", () => picture.zoom(0.77)),
    button("Fit", t("Fit"), () => picture.fit()), el("span", { class: data.cut ? "bad" : "quiet" }, counted)),
  el("ul", { class: "key" }, key), canvas,
  el("p", { id: "how", class: "quiet small" }, t("Drag to move, wheel or + and − to zoom, arrows to pan, Enter opens the chosen note, Tab leaves.")),
  card(t("Notes in the picture"), el("ul", { class: "plain columns" }, picture.nodes.slice(0, 40).map((node) =>
    noteRow(node, el("div", { class: "row small" }, `${node.links} ${t("links")}`, el("a", { href: "#/graph?around=" + encodeURIComponent(node.path) }, t("Around this note"))))))));
  return out;
}

async function viewBlockers() {
  const { blockers, total } = await ask("blockers");
  const out = [el("h1", {}, t("Blockers"))];
  if (!blockers.length) out.push(el("p", {}, t("Nothing is blocked.")));
  const named = (one) => el("li", {}, one.id ? noteLink(one.id, one.title) : clean(one.target),
    one.status && [" ", el("span", { class: "badge" }, line(one.status, 30))], one.ended && ` (${t("ended")})`, !one.id && ` (${t("not found")})`);
  for (const one of blockers) {
    out.push(el("section", { class: "card" }, el("h2", {}, noteLink(one.path, one.title)), el("p", {}, badges(one), el("span", { class: "quiet small" }, `${t("since")} ${moment(one.since)}`)),
      one.cycle && el("p", { class: "bad" }, t("It waits for itself in the end: a ring.")),
      one.by.length > 0 && [el("h3", { class: "small" }, t("Waits for")), el("ul", {}, one.by.map(named))],
      one.blocks.length > 0 && [el("h3", { class: "small" }, t("Waiting for it")), el("ul", {}, one.blocks.map(named))]));
  }
  if (total > blockers.length) out.push(el("p", { class: "quiet" }, `+ ${total - blockers.length} ${t("more")}`));
  return out;
}

async function viewDevices() {
  const { agents, git } = await ask("devices");
  const heads = ["Agent", "Device", "Seen", "Doing", "Tasks"];
  const rows = agents.map((one) => el("tr", {}, [one.agent, one.device, moment(one.seen), one.doing || one.subject, one.tasks.map((task) => task.title).join(", ")]
    .map((text, at) => el("td", { "data-label": t(heads[at]) }, line(text) || null))));
  const last = git.last_sync && git.last_sync.at ? `${git.last_sync.state} · ${moment(git.last_sync.at)} ${git.last_sync.reason || ""}` : t("never");
  return [
    el("h1", {}, t("Devices")),
    card(t("Sync"), pairs([["State", git.state], ["Remote", git.remote || t("none")], ["Uncommitted", git.uncommitted], ["Unpushed", git.unpushed ?? "–"], ["Behind", git.behind ?? "–"], ["Last sync", last]]),
      git.error && el("p", { class: "bad" }, line(git.error))),
    card(t("Agents and devices"), rows.length ? el("table", {}, el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, t(head))))), el("tbody", {}, rows))
      : el("p", { class: "quiet" }, t("Nothing."))),
  ];
}

function route() {
  const [, path, words] = /^#\/([^?]*)\??(.*)$/.exec(location.hash) || ["", "overview", ""];
  const [name, ...rest] = path.split("/");
  let reference = rest.join("/");
  try { reference = decodeURIComponent(reference); } catch { /* as written */ }
  return { name, reference, given: new URLSearchParams(words) };
}

// Not scrollIntoView: that moves the place from which Tab goes on.
function intoSight(link) {
  const bar = link.parentElement, over = link.offsetLeft - bar.offsetLeft;
  bar.scrollLeft = Math.max(Math.min(bar.scrollLeft, over), over + link.offsetWidth - bar.clientWidth);
}

let turn = 0;
async function show(focus = false) {
  const mine = ++turn;
  const { name, reference, given } = route();
  const main = document.getElementById("main");
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === "#/" + name) { link.setAttribute("aria-current", "page"); intoSight(link); } else link.removeAttribute("aria-current");
  }
  main.setAttribute("aria-busy", "true");
  const view = VIEWS.find(([one]) => one === name) || VIEWS[0];
  let parts;
  try {
    parts = name === "note" ? await viewNote(reference) : await view[2](given);
  } catch (error) {
    parts = failure(error, name);
  }
  if (mine !== turn) return;
  main.replaceChildren(...[parts].flat(3).filter((part) => part));
  main.removeAttribute("aria-busy");
  const heading = main.querySelector("h1");
  document.title = heading ? `${heading.textContent} · mdmem` : "mdmem";
  if (focus) { main.focus({ preventScroll: true }); scrollTo(0, 0); }
}

function failure(error, name) {
  const token = error.status === 401;
  const again = name === "search" && [el("p", {}, el("a", { href: "#/search" }, t("Search")))];
  return [el("h1", {}, t(token ? "No access" : "Nothing found.")),
    el("p", {}, token ? t("Open the address that mdmem dashboard printed in the terminal.") : line([error.message, error.why, error.hint].filter(Boolean).join(" · "))), again];
}

function frame() {
  document.documentElement.lang = language.now === "zh" ? "zh-Hans" : "en";
  document.getElementById("nav").setAttribute("aria-label", t("Views"));
  document.getElementById("nav").replaceChildren(...VIEWS.map(([name, word]) => el("a", { href: "#/" + name }, t(word))));
  document.getElementById("skip").replaceChildren(document.createTextNode(t("Skip to the content")));
  document.getElementById("language-label").replaceChildren(document.createTextNode(t("Language")));
  document.getElementById("language").value = language.now;
}

openSource();
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});
document.getElementById("language").addEventListener("change", (event) => {
  setLanguage(event.target.value);
  frame();
  show();
});
addEventListener("hashchange", () => show(true));
frame();
show();
