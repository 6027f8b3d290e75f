"use strict";
// Data of the page, and what all drawings share: colors of the page's scheme, and words for times and numbers.

async function unpackData() {
  const text = atob(JSON.parse(document.getElementById("data").textContent));
  const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// palette has the colors that the page has just now: light, dark, or for paper.
function palette() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue("--" + name).trim();
  const names = ["ground", "card", "ink", "soft", "line", "faint", "free", "failed"];
  const colors = Object.fromEntries(names.map((name) => [name, of(name)]));
  // Okabe and Ito's, which people with any kind of color vision can tell apart.
  colors.hues = ["blue", "orange", "green", "pink", "sky", "red", "yellow"].map(of);
  [colors.blue, colors.orange, colors.green, colors.pink, colors.sky, colors.red, colors.yellow] = colors.hues;
  return colors;
}

// mix is a color between two.
function mix(a, b, part) {
  const of = (c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16));
  const [x, y] = [of(a), of(b)];
  return "#" + x.map((v, i) => Math.round(v + (y[i] - v) * part).toString(16).padStart(2, "0")).join("");
}

// unitOf chooses the unit of an axis of time.
function unitOf(seconds) {
  if (seconds > 3 * 86400) return { name: "days", seconds: 86400 };
  if (seconds > 3 * 3600) return { name: "hours", seconds: 3600 };
  if (seconds > 180) return { name: "minutes", seconds: 60 };
  return { name: "seconds", seconds: 1 };
}

function number(v) {
  const digits = Math.abs(v) >= 100 || Number.isInteger(v) ? 0 : Math.abs(v) >= 10 ? 1 : 2;
  return v.toLocaleString("en-US", { maximumFractionDigits: digits });
}

// lasting says a duration in its two largest units.
function lasting(seconds) {
  const s = Math.round(seconds);
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min" + (s % 60 ? " " + (s % 60) + " s" : "");
  if (s < 86400) return Math.floor(s / 3600) + " h" + (Math.floor(s / 60) % 60 ? " " + (Math.floor(s / 60) % 60) + " min" : "");
  return Math.floor(s / 86400) + " d" + (Math.floor(s / 3600) % 24 ? " " + (Math.floor(s / 3600) % 24) + " h" : "");
}

function percent(v) { return number(100 * v) + " %"; }
