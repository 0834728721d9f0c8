"use strict";
// Where the data comes from: the server that this page came from, or the block in an exported file.
const source = { offline: null, token: "" };

function openSource() {
  const block = document.getElementById("data");
  if (block) {
    source.offline = JSON.parse(block.textContent);
    return;
  }
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  try {
    if (found) sessionStorage.setItem("mdmem-token", found[1]);
    source.token = sessionStorage.getItem("mdmem-token") || "";
  } catch {
    source.token = found ? found[1] : "";
  }
  // Out of the address bar and the browser's history.
  if (found) history.replaceState(null, "", location.pathname + "#/overview");
}

class Failed extends Error {
  constructor(error, status) {
    super(error.message || "error");
    this.status = status;
    this.why = error.why || "";
    this.hint = error.hint || "";
  }
}

async function ask(name, given = {}) {
  if (source.offline) return askFile(name, given);
  const words = new URLSearchParams();
  for (const [key, value] of Object.entries(given)) {
    for (const one of [value].flat()) if (one !== "" && one !== undefined) words.append(key, one);
  }
  return received(await reach("/api/" + name + "?" + words, {}));
}

async function resolveConflict(asked) {
  const options = { method: "POST", body: JSON.stringify(asked), headers: { "Content-Type": "application/json" } };
  return received(await reach("/api/resolve", options));
}

async function reach(address, options) {
  options.headers = { ...options.headers, "X-Mdmem-Token": source.token };
  try {
    return await fetch(address, { ...options, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch {
    throw new Failed({ message: t("The server does not answer. Is mdmem dashboard still running?") }, 0);
  }
}

async function received(response) {
  const data = await response.json().catch(() => ({ error: { message: "no JSON" } }));
  if (!response.ok) throw new Failed(data.error || {}, response.status);
  return data;
}

function inFile(reference) {
  const notes = source.offline.notes;
  if (Object.hasOwn(notes, reference)) return reference;
  return Object.keys(notes).find((path) => notes[path].note.id === reference);
}

function askFile(name, given) {
  const data = source.offline;
  if (name === "search") return searchFile(given);
  if (name === "note" || name === "timeline") {
    const path = inFile(given.note);
    if (!path) throw new Failed({ message: t("Not in this file.") }, 404);
    return name === "note" ? data.notes[path] : data.timelines[path] || { events: [] };
  }
  if (name === "graph") return graphInFile(data.graph, given);
  return data[name];
}

function graphInFile(graph, given) {
  const fits = (node) => (!given.kind || node.kind === given.kind) && (!given.type || node.type === given.type);
  let edges = graph.edges.filter((edge) => !given.rel || edge.rel === given.rel);
  const names = new Set(graph.nodes.filter(fits).map((node) => node.name));
  edges = edges.filter((edge) => names.has(edge.from) && names.has(edge.to));
  let near = null;
  if (given.around) {
    const start = graph.nodes.find((node) => [node.name, node.path].includes(given.around));
    near = new Set(start ? [start.name] : []);
    for (let step = 0; step < 2; step++) {
      const now = new Set(near);
      for (const edge of edges) if (now.has(edge.from) || now.has(edge.to)) near.add(edge.from).add(edge.to);
    }
    edges = edges.filter((edge) => near.has(edge.from) && near.has(edge.to));
  }
  const used = new Set(edges.flatMap((edge) => [edge.from, edge.to]));
  const nodes = graph.nodes.filter((node) => used.has(node.name) || (near && near.has(node.name)));
  return { ...graph, nodes, edges };
}

// By words only: how many of the question's words stand in a note, those in the title twice.
function searchFile(given) {
  const words = line(given.q).toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (const [path, entry] of Object.entries(source.offline.notes)) {
    if (given.kind && entry.note.kind !== given.kind) continue;
    const title = String(entry.note.title).toLowerCase();
    const text = entry.body.toLowerCase();
    let score = 0;
    for (const word of words) score += (title.includes(word) ? 2 : 0) + (text.includes(word) ? 1 : 0);
    if (!score) continue;
    const at = Math.max(0, Math.min(...words.map((word) => text.indexOf(word)).filter((place) => place >= 0), text.length));
    found.push({ ...entry.note, path, score, snippet: entry.body.slice(at < 60 ? 0 : at - 60, at + 240), start_line: "", tags: [] });
  }
  found.sort((a, b) => b.score - a.score);
  return { results: found.slice(0, 20), notices: [t("This file searches by words only.")], mode: "keyword" };
}
