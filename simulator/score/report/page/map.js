"use strict";
// The map of the fleet over time: racks of nodes, a square for each accelerator, a color for each gang.

// How many colors gangs have: seven hues in three shades.
const tints = 21;

// ones counts the squares of a node.
function ones(bits) {
  let n = 0;
  for (; bits; bits &= bits - 1) n++;
  return n;
}

class FleetMap {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.canvas = root.querySelector("canvas");
    this.slider = root.querySelector(".time");
    this.status = root.querySelector(".status");
    this.output = root.querySelector(".now");
    this.gang = null; // the stay that is hovered
    this.at = 0;
    this.read();
    this.slider.addEventListener("input", () => this.show(this.slider.value / 1000 * data.end));
    root.querySelector(".play").addEventListener("click", (e) => this.play(e.currentTarget));
    this.canvas.addEventListener("pointermove", (e) => this.hover(e));
    this.canvas.addEventListener("pointerleave", () => this.isolate(null, ""));
  }

  // read undoes the packing: differences become instants and nodes.
  read() {
    const d = this.data;
    let at = 0, stretch = 0;
    this.stays = d.starts.map((delta, i) => {
      at += delta;
      const stay = { job: d.jobs[i], from: at, to: d.lasts[i] < 0 ? Infinity : at + d.lasts[i], runs: [] };
      let node = 0;
      for (let r = 0; r < d.runs[i]; r++, stretch++) {
        node += d.first[stretch];
        stay.runs.push([node, d.count[stretch], d.bits[stretch]]);
        node += d.count[stretch];
      }
      return stay;
    });
    this.tint();
  }

  // tint gives each stay a color: that of which least is to be seen when it begins, so that large neighbors differ.
  tint() {
    const seen = new Array(tints).fill(0), ends = this.stays.slice().sort((a, b) => a.to - b.to);
    let over = 0;
    for (const stay of this.stays) {
      for (; ends[over].to <= stay.from && over < ends.length - 1; over++) seen[ends[over].tint ?? 0] -= ends[over].size ?? 0;
      stay.tint = seen.indexOf(Math.min(...seen));
      stay.size = stay.to > stay.from ? stay.runs.reduce((sum, [, count, bits]) => sum + count * ones(bits), 0) : 0;
      seen[stay.tint] += stay.size;
    }
  }

  // place lays everything out, with squares as large as the height allows.
  place(width) {
    const l = this.data.layout;
    const racks = l.rackNames.map((name, i) => ({ name, section: l.rackSections[i], nodes: [] }));
    l.racks.forEach((rack, node) => racks[rack].nodes.push(node));
    this.width = width;
    for (this.size = 14; this.size >= 2; this.size--) {
      this.height = this.lay(width, racks);
      if (this.height <= 620) return;
    }
    this.size = 2;
  }

  // lay puts racks into blocks, one for each section, and blocks into lines, and says how high that is.
  lay(width, racks) {
    const l = this.data.layout, size = this.size, most = Math.max(1, ...l.squares);
    this.across = most <= 1 ? 1 : most <= 4 ? 2 : most <= 16 ? 4 : 8;
    const node = { w: this.across * size + 3, h: Math.ceil(most / this.across) * size + 3 };
    const largest = Math.max(...racks.map((r) => r.nodes.length));
    const columns = Math.max(1, Math.min(largest, Math.round(Math.sqrt(largest * 1.7 * node.h / node.w))));
    const named = columns * node.w > 50;
    const rack = { w: columns * node.w + Math.max(6, size), head: named ? 14 : 0 };
    this.nodes = new Array(l.nodes.length);
    this.labels = [];
    let x = 0, y = 0, line = 0;
    for (let first = 0, end; first < racks.length; first = end) {
      for (end = first; end < racks.length && racks[end].section === racks[first].section;) end++;
      const fit = Math.max(1, Math.min(end - first, Math.floor(width / rack.w)));
      if (x > 0 && x + fit * rack.w > width + size) {
        y += line + 8;
        x = line = 0;
      }
      const name = l.sections[racks[first].section], top = name ? 18 : 0;
      if (name) this.labels.push([x, y + 12, name, true, fit * rack.w - 8]);
      let at = y + top;
      for (let r = first; r < end; r += fit) {
        const row = racks.slice(r, Math.min(end, r + fit));
        row.forEach((of, k) => this.laySingle(of, { x: x + k * rack.w, y: at, columns, node, head: rack.head }));
        at += rack.head + Math.ceil(Math.max(...row.map((of) => of.nodes.length)) / columns) * node.h + 5;
      }
      line = Math.max(line, at - y);
      x += fit * rack.w + 10;
    }
    return y + line;
  }

  laySingle(rack, place) {
    const { columns, node, head } = place;
    if (head && rack.name) this.labels.push([place.x, place.y + 10, brief(rack.name), false, columns * node.w - 3]);
    rack.nodes.forEach((n, i) => {
      this.nodes[n] = {
        x: place.x + (i % columns) * node.w, y: place.y + head + Math.floor(i / columns) * node.h,
        w: node.w - 3, h: Math.ceil(Math.max(1, this.data.layout.squares[n]) / this.across) * this.size,
      };
    });
  }

  resize() {
    const width = Math.max(300, this.root.clientWidth), scale = window.devicePixelRatio || 1;
    if (width !== this.width) this.place(width);
    this.canvas.width = width * scale;
    this.canvas.height = this.height * scale;
    this.canvas.style.width = width + "px";
    this.canvas.style.height = this.height + "px";
    this.scale = scale;
    this.draw();
  }

  show(at) {
    this.at = Math.min(Math.max(0, at), this.data.end);
    this.slider.value = String(Math.round(this.at / Math.max(1, this.data.end) * 1000));
    this.draw();
  }

  // colorOf is the color of a tint.
  colorOf(tint, colors) {
    const hue = colors.hues[tint % colors.hues.length], shade = Math.floor(tint / colors.hues.length);
    return shade === 0 ? hue : mix(hue, shade === 1 ? colors.card : colors.ink, 0.33);
  }

  draw() {
    if (!this.nodes) return;
    const g = this.canvas.getContext("2d"), colors = palette(), l = this.data.layout;
    g.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    g.clearRect(0, 0, this.width, this.height);
    const family = getComputedStyle(document.body).fontFamily;
    for (const [x, y, text, head, room] of this.labels) {
      g.font = (head ? "600 12px " : "10px ") + family;
      g.fillStyle = head ? colors.ink : colors.soft;
      g.fillText(fitting(g, text, room), x, y);
    }
    g.fillStyle = colors.free;
    this.nodes.forEach((n, i) => this.squares(g, n, l.squares[i] >= 32 ? 0xffffffff : (1 << l.squares[i]) - 1));
    let used = 0, gangs = 0;
    this.owner = new Map();
    for (const stay of this.stays) {
      if (stay.from > this.at) break;
      if (stay.to <= this.at) continue;
      gangs++;
      g.fillStyle = this.colorOf(stay.tint, colors);
      g.globalAlpha = this.gang === null || this.gang === stay.job ? 1 : 0.12;
      for (const [first, count, bits] of stay.runs) {
        for (let i = first; i < first + count; i++) {
          used += this.squares(g, this.nodes[i], bits) * l.per[i];
          if (!this.owner.has(i)) this.owner.set(i, []);
          this.owner.get(i).push([bits, stay]);
        }
      }
    }
    g.globalAlpha = 1;
    this.outages(g, colors);
    this.output.textContent = `${lasting(this.at)} · ${number(used)} GPUs in use · ${number(gangs)} gangs`;
  }

  outages(g, colors) {
    for (const node of this.data.layout.closed || []) {
      const n = this.nodes[node];
      g.strokeStyle = colors.soft;
      g.setLineDash([2, 2]);
      g.strokeRect(n.x + 0.5, n.y + 0.5, n.w - 1, n.h - 1);
      g.setLineDash([]);
    }
    this.gone = new Map();
    for (const [node, from, to, drained] of this.data.outages || []) {
      if (from > this.at || to <= this.at) continue;
      const n = this.nodes[node];
      this.gone.set(node, drained ? "drained" : "failed");
      g.fillStyle = g.strokeStyle = colors.failed;
      if (!drained) {
        g.fillRect(n.x, n.y, n.w, n.h);
        continue;
      }
      g.beginPath();
      for (let k = 0; k < n.w + n.h; k += 4) {
        g.moveTo(n.x + Math.min(k, n.w), n.y + Math.max(0, k - n.w));
        g.lineTo(n.x + Math.max(0, k - n.h), n.y + Math.min(k, n.h));
      }
      g.stroke();
    }
  }

  // squares fills those of a node whose bits are set, and says how many.
  squares(g, n, bits) {
    const side = this.size > 3 ? this.size - 1 : this.size - 0.5;
    let count = 0;
    for (let i = 0; bits; i++, bits >>>= 1) {
      if (!(bits & 1)) continue;
      g.fillRect(n.x + (i % this.across) * this.size, n.y + Math.floor(i / this.across) * this.size, side, side);
      count++;
    }
    return count;
  }

  hover(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const node = this.nodes.findIndex((n) => x >= n.x && x < n.x + n.w && y >= n.y && y < n.y + n.h);
    if (node < 0) return this.isolate(null, "");
    const l = this.data.layout, n = this.nodes[node], rack = l.racks[node];
    const square = Math.floor((y - n.y) / this.size) * this.across + Math.floor((x - n.x) / this.size);
    const where = [l.sections[l.rackSections[rack]], l.rackNames[rack], l.nodes[node]].filter(Boolean).join(" / ");
    const found = (this.owner.get(node) || []).find(([bits]) => (bits >>> square) & 1);
    if (!found) return this.isolate(null, `${where}: ${this.gone.get(node) || "free"}`);
    return this.isolate(found[1].job, `${where}: ${this.say(found[1])}`);
  }

  say(stay) {
    const d = this.data;
    if (stay.job < 0) return `${d.before[-1 - stay.job]}, which ran at the beginning`;
    const nodes = stay.runs.reduce((sum, run) => sum + run[1], 0);
    const name = d.names && d.names[stay.job] ? d.names[stay.job] : "job #" + stay.job;
    const tenant = d.tenants && d.tenants[stay.job] ? " of " + d.tenants[stay.job] : "";
    const until = stay.to === Infinity ? "and still at the end" : "to " + lasting(stay.to);
    return `${name}${tenant}, ${number(d.members[stay.job])} members on ${number(nodes)} nodes, from ${lasting(stay.from)} ${until}`;
  }

  isolate(job, text) {
    this.status.textContent = text;
    if (job === this.gang) return;
    this.gang = job;
    this.draw();
  }

  // play goes through the whole run in half a minute.
  play(button) {
    this.playing = !this.playing;
    button.textContent = this.playing ? "❚❚" : "▶";
    button.setAttribute("aria-label", this.playing ? "Pause" : "Play");
    if (!this.playing) return;
    if (this.at >= this.data.end) this.at = 0;
    let before = performance.now();
    const step = (now) => {
      if (!this.playing) return;
      this.show(this.at + (now - before) / 30000 * this.data.end);
      before = now;
      if (this.at >= this.data.end) return void this.play(button);
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }
}

// brief is the beginning of a name that is a UUID; nobody reads more of it.
function brief(name) {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-/.test(name) ? name.slice(0, 8) + "…" : name;
}

function fitting(g, text, room) {
  if (g.measureText(text).width <= room) return text;
  let end = text.length;
  while (end > 1 && g.measureText("…" + text.slice(text.length - end)).width > room) end--;
  return "…" + text.slice(text.length - end);
}
