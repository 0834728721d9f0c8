"use strict";
// The only place that puts text on the page: always as text, never as markup.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu;

function clean(text) {
  return String(text ?? "").replace(/\r\n?/g, "\n").replace(HIDDEN, "");
}

function line(text, most = 300) {
  const one = clean(text).replace(/\s+/g, " ").trim();
  return one.length > most ? one.slice(0, most - 1) + "…" : one;
}

// el("li", {class: "x", onclick: f}, "text", child, [more])
function el(name, given = {}, ...children) {
  const svg = ["svg", "path", "line", "text", "circle", "rect", "title"].includes(name) && given.svg;
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (key === "svg" || value === undefined || value === false || value === null) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : clean(value));
  }
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(clean(child)));
  }
  return node;
}

function card(title, ...children) {
  return el("section", { class: "card" }, el("h2", {}, title), children);
}

function day(text) {
  return clean(text).slice(0, 10);
}

function moment(text) {
  return clean(text).slice(0, 16).replace("T", " ");
}

function noteLink(reference, title) {
  return el("a", { href: "#/note/" + encodeURIComponent(String(reference).toWellFormed?.() ?? reference) }, line(title || reference));
}

function say(text) {
  const place = document.getElementById("said");
  place.replaceChildren(document.createTextNode(clean(text)));
}
