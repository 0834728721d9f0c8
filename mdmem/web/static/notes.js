"use strict";
// Views of notes: one note with its past, search, conflicts.
function badges(note) {
  return [note.type || note.kind, note.status, note.scope && note.scope !== "shared" ? note.scope : ""]
    .filter(Boolean).map((word) => el("span", { class: "badge" }, t(line(word, 40))));
}

function noteRow(note, ...more) {
  const name = note.path || note.id || note.name;
  return el("li", {}, badges(note), noteLink(name, note.title || name),
    el("div", { class: "quiet small" }, [note.path, moment(note.updated)].filter(Boolean).join(" · ")), more);
}

function fieldText(value) {
  if (Array.isArray(value)) return value.map(fieldText).join(", ");
  if (value && typeof value === "object") return Object.entries(value).map(([key, one]) => `${key}: ${fieldText(one)}`).join("; ");
  return clean(value);
}

// `asIs`: the names are keys of a file and stay as they stand there.
function pairs(entries, asIs = false) {
  return el("dl", { class: "pairs" }, entries.map(([name, value]) => [el("dt", {}, asIs ? line(name, 60) : t(line(name, 60))), el("dd", {}, fieldText(value))]));
}

async function viewNote(reference) {
  const [data, past] = await Promise.all([ask("note", { note: reference }), ask("timeline", { note: reference }).catch(() => ({ events: [] }))]);
  const events = past.events.map((event) => timelineRow(event, reference));
  const related = data.related.map((other) => {
    const via = (other.via || []).map((step) => (step.forward ? `→ ${step.rel}` : `← ${step.rel}`)).join(" ");
    return noteRow(other, el("div", { class: "quiet small" }, line(via)));
  });
  return [
    el("h1", {}, line(data.note.title || data.note.path)),
    el("p", {}, badges(data.note), el("a", { href: "#/graph?around=" + encodeURIComponent(data.note.path) }, t("In the graph"))),
    card(t("Text"), el("pre", { class: "text", tabindex: 0, "aria-label": t("Text") }, data.body.trim()), data.cut && el("p", { class: "bad" }, t("cut: the note is longer"))),
    el("div", { class: "grid" },
      card(t("Fields"), pairs([["path", data.note.path], ...Object.entries(data.fields)], true)),
      card(t("Related"), related.length ? el("ul", { class: "plain" }, related) : el("p", { class: "quiet" }, t("Nothing.")))),
    card(t("Timeline"), events.length ? el("ul", { class: "plain" }, events) : el("p", { class: "quiet" }, t("No history yet: it is not committed."))),
  ];
}

function timelineRow(event, reference) {
  const head = [el("span", { class: "badge" }, t(event.event)), el("span", { class: "quiet" }, moment(event.date) + " ")];
  if (event.event === "linked") return el("li", {}, head, noteLink(event.from, event.title), ` ${line(event.rel)}`);
  const changes = (event.changes || []).map((one) => el("li", {}, `${line(one.field)}: `, one.was && [el("del", {}, line(one.was)), " → "], line(one.now)));
  const out = el("li", {}, head, line(event.subject), el("div", { class: "quiet small" }, line(event.who)), changes.length > 0 && el("ul", { class: "small" }, changes));
  if (event.rev && !source.offline) {
    const place = el("div", {});
    const more = el("details", { ontoggle: () => more.open && !place.firstChild && showDiff(place, reference, event.rev) }, el("summary", {}, t("Show the change")), place);
    out.append(more);
  }
  return out;
}

async function showDiff(place, reference, rev) {
  try {
    const { lines } = await ask("diff", { note: reference, rev });
    const kind = (text) => ({ "+": "add", "-": "cut", "@": "quiet" }[text[0]]);
    place.replaceChildren(el("pre", { class: "diff" }, lines.map((text) => el("span", { class: kind(text) }, text || " "))));
  } catch (error) {
    place.replaceChildren(el("p", { class: "bad" }, line(error.message)));
  }
}

async function viewSearch(given) {
  const words = el("input", { type: "search", name: "q", value: given.get("q") || "", autocomplete: "off", maxlength: 2000 });
  const select = (name, values, label) => el("label", { class: "field" }, t(label), el("select", { name },
    values.map((value) => el("option", { value, selected: (given.get(name) || "") === value }, t(value || "all")))));
  const form = el("form", { class: "ask", role: "search", onsubmit: (event) => {
    event.preventDefault();
    const asked = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    location.hash = "#/search?" + asked;
  } },
  el("label", { class: "field words" }, t("Words or a question"), words),
  !source.offline && select("mode", ["hybrid", "keyword", "semantic"], "Mode"),
  select("kind", ["", "memory", "entity", "note", "session", "task"], "Kind"),
  el("button", { class: "main" }, t("Find")));
  const out = [el("h1", {}, t("Search")), form];
  if (!given.get("q")) return out;
  const asked = { q: given.get("q"), mode: given.get("mode") || "hybrid", limit: 15, kind: given.get("kind") || "" };
  const found = await ask("search", asked);
  say(`${found.results.length} ${t("found")}`);
  for (const notice of found.notices) out.push(el("p", { class: "quiet small" }, line(notice)));
  if (!found.results.length) out.push(el("p", {}, t("Nothing found.")));
  else out.push(el("section", { class: "card" }, el("ul", { class: "plain" }, found.results.map(hitRow))));
  if (found.explain) out.push(el("details", { class: "card" }, el("summary", {}, t("How the search went")), explained(found.explain)));
  return out;
}

function hitRow(hit) {
  const why = hit.explain && Object.keys(hit.explain).length
    ? el("details", {}, el("summary", {}, `${t("Why it was found")} · ${t("score")} ${hit.score.toFixed(3)}`), pairs(Object.entries(hit.explain))) : null;
  return noteRow(hit, el("pre", {}, clean(hit.snippet)), why);
}

function explained(data) {
  const terms = (data.terms || []).map((term) => `${term.term} (idf ${term.idf}, ${term.windows})`).join(", ");
  return pairs(Object.entries({ ...data, terms }).filter(([, value]) => fieldText(value)));
}

async function viewConflicts() {
  const data = await ask("conflicts");
  const writable = data.writable && !source.offline;
  const out = [el("h1", {}, t("Conflicts"))];
  if (!data.notes.length) out.push(el("p", {}, t("No conflicts.")));
  else if (source.offline) out.push(el("p", { class: "quiet" }, t("This file is only for reading: settle it with mdmem resolve.")));
  else if (!writable) out.push(el("p", { class: "bad" }, t("This store is not trusted on this machine, so nothing is written: mdmem trust.")));
  for (const note of data.notes) {
    out.push(el("section", { class: "card" }, el("h2", {}, noteLink(note.path, note.title)), el("p", { class: "quiet small" }, clean(note.path)),
      note.conflicts.map((conflict) => conflictPart(note, conflict, writable))));
  }
  return out;
}

function conflictPart(note, conflict, writable) {
  const place = el("p", { class: "bad", role: "alert" });
  const keep = (label, what, more = {}) => writable && el("button", { ...more, onclick: (event) => settle(event.target, place, note, conflict, what) }, t(label));
  const texts = conflict.versions.map((version) => clean(version.text || ""));
  const versions = conflict.versions.map((version, place) => {
    const other = texts.length === 2 ? texts[1 - place] : texts[place];
    const origin = [version.agent, version.device, moment(version.updated)].filter(Boolean).join(" · ");
    return el("div", { class: "side" }, el("strong", {}, `${t("Version")} ${version.number}`), el("div", { class: "quiet small" }, line(origin)),
      version.removed ? el("p", { class: "quiet" }, `(${t("removed")})`) : el("pre", { class: "text" }, marked(texts[place], other)),
      version.removed && conflict.kind === "deleted" ? keep("Delete the note", "deleted")
        : keep("Keep this", String(version.number), { "aria-label": `${t("Keep this")}: ${conflict.field} ${version.number}` }));
  });
  return el("div", {}, el("h3", { class: "small" }, conflict.field && conflict.field !== "body" ? line(conflict.field, 80) : t(line(conflict.field || conflict.kind, 80))), el("div", { class: "sides" }, versions),
    conflict.kind !== "deleted" && keep("Keep both", "both"), place);
}

// A text with the words marked in which it differs from the other one, from the first such word to the last.
function marked(text, other) {
  const [mine, theirs] = [text, other].map((one) => one.match(/\s+|[\u3400-\u9fff]|[^\s\u3400-\u9fff]+/g) || []);
  let start = 0, end = 0;
  while (start < Math.min(mine.length, theirs.length) && mine[start] === theirs[start]) start += 1;
  while (end < Math.min(mine.length, theirs.length) - start && mine.at(-1 - end) === theirs.at(-1 - end)) end += 1;
  const middle = mine.slice(start, mine.length - end).join("");
  return [mine.slice(0, start).join(""), middle && el("mark", {}, middle), mine.slice(mine.length - end).join("")];
}

async function settle(button, place, note, conflict, keep) {
  button.disabled = true;
  try {
    const done = await resolveConflict({ note: note.path, field: conflict.field || "", keep });
    await show();
    say(t("Settled.") + (done.reason ? ` ${t("saved, not committed yet")}: ${done.reason}` : ""));
  } catch (error) {
    button.disabled = false;
    place.replaceChildren(document.createTextNode(line([error.message, error.why, error.hint].filter(Boolean).join(" · "))));
  }
}
