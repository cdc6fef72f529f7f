// A heat map of regions over a run, on one canvas: tiles from the server, pan, zoom and keyboard.
//
// The view is {x0, x1, y0, y1}, shares of the whole run. While a tile is on its way the last one is
// drawn in its place, so the picture follows the hand at once.
import { ask, guarded, h } from "./dom.js";
import { COLOURS, colour, count, duration, ramp, short } from "./format.js";

export const LEFT = 120, RIGHT = 16, TOP = 18, BOTTOM = 24;
export const WHOLE = { x0: 0, x1: 1, y0: 0, y1: 1 };
const NARROWEST = 1e-7;
const DETAIL_AFTER = 350; // ms without a change before a finer recording is asked for
window.studioTiles = []; // how long each took, for the benchmark

export class HeatMap {
  /** `source`: {key, against?, run, whole: {touches, time, regions}}; `changed` gets each view. */
  constructor(source, { height = 420, layer = "touches", axis = "touches", view = WHOLE, changed = () => {}, clicked = () => {}, shown = () => {} }) {
    Object.assign(this, { source, layer, axis, changed, clicked, shown });
    this.view = { ...WHOLE, ...view };
    this.canvas = h("canvas", { className: "heat", tabIndex: 0, height, role: "application", ariaLabel: "Heat map of regions over the run. Arrow keys pan, plus and minus zoom, with Shift for regions, 0 shows all, comma and period go to the launch before and after." });
    this.canvas.style.height = `${height}px`;
    this.last = null;
    this.tip = h("div", { className: "tip", hidden: true });
    document.body.append(this.tip);
    this.listen();
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.canvas);
  }

  close() {
    this.observer.disconnect();
    this.tip.remove();
    this.asked?.abort();
    clearTimeout(this.timer);
    clearTimeout(this.pointing);
  }

  get area() {
    return { left: LEFT, top: TOP, width: this.canvas.width - LEFT - RIGHT, height: this.canvas.height - TOP - BOTTOM };
  }

  resize() {
    const width = Math.round(this.canvas.clientWidth);
    if (!width || width === this.canvas.width) return;
    this.canvas.width = width; // which clears it
    this.draw();
    this.load();
  }

  set(changes) {
    Object.assign(this, changes);
    this.last = changes.layer || changes.axis ? null : this.last;
    this.load();
  }

  show(view, tell = true) {
    const span = Math.min(1, Math.max(NARROWEST, view.x1 - view.x0)), tall = Math.min(1, Math.max(0.5 / this.source.whole.regions, view.y1 - view.y0));
    const x0 = Math.min(1 - span, Math.max(0, view.x0)), y0 = Math.min(1 - tall, Math.max(0, view.y0));
    this.view = { x0, x1: Math.min(1, x0 + span), y0, y1: Math.min(1, y0 + tall) };
    if (tell) this.changed(this.view, this);
    this.draw();
    this.load();
  }

  zoom(factor, x, y, onlyY = false) {
    const v = this.view, by = { ...v };
    if (!onlyY) { by.x0 = x - (x - v.x0) * factor; by.x1 = x + (v.x1 - x) * factor; }
    else { by.y0 = y - (y - v.y0) * factor; by.y1 = y + (v.y1 - y) * factor; }
    this.show(by);
  }

  pan(dx, dy) {
    const v = this.view, w = v.x1 - v.x0, t = v.y1 - v.y0;
    this.show({ x0: v.x0 + dx * w, x1: v.x1 + dx * w, y0: v.y0 + dy * t, y1: v.y1 + dy * t });
  }

  /** Ask for the tile of this view; an answer that comes too late is dropped. */
  async load(detail = false) {
    if (this.canvas.width < LEFT + RIGHT + 8) return;
    this.asked?.abort();
    clearTimeout(this.timer);
    this.canvas.dataset.ready = "no";
    const asked = (this.asked = new AbortController()), { width, height } = this.area, view = { ...this.view };
    const query = new URLSearchParams({ layer: this.layer, axis: this.axis, width, height, ...view });
    if (this.source.against) query.set("against", this.source.against);
    if (detail) query.set("detail", 1);
    const began = performance.now();
    const answer = await guarded(async () => {
      const found = await ask(`api/runs/${this.source.key}/tile?${query}`, { signal: asked.signal, raw: true });
      return { headers: found.headers, pixels: new Uint8Array(await found.arrayBuffer()) };
    });
    if (!answer || asked.signal.aborted || answer.pixels.length !== width * height) return;
    this.pixels = answer.pixels;
    this.top = +answer.headers.get("x-top");
    this.detail = detail;
    this.perBin = +answer.headers.get("x-touches-per-bin");
    this.paint(width, height, view);
    this.draw();
    window.studioTiles.push({ ms: performance.now() - began, span: view.x1 - view.x0, detail });
    const finer = answer.headers.get("x-finer") === "1";
    this.canvas.dataset.ready = finer && !detail ? "coarse" : "yes";
    this.shown(this);
    if (finer && !detail) this.timer = setTimeout(() => this.load(true), DETAIL_AFTER);
  }

  paint(width, height, view) {
    const colours = ramp(this.source.against ? "difference" : this.layer);
    const image = new ImageData(width, height), to = new Uint32Array(image.data.buffer);
    for (let i = 0; i < to.length; i += 1) to[i] = colours[this.pixels[i]];
    const tile = new OffscreenCanvas(width, height);
    tile.getContext("2d").putImageData(image, 0, 0);
    this.last = { tile, view };
  }

  repaint() {
    if (this.last) this.paint(this.last.tile.width, this.last.tile.height, this.last.view);
    this.draw();
  }

  draw() {
    const g = this.canvas.getContext("2d"), { left, top, width, height } = this.area, v = this.view;
    g.fillStyle = colour("--card");
    g.fillRect(0, 0, this.canvas.width, this.canvas.height);
    if (this.last) {
      const at = this.last.view, w = at.x1 - at.x0, t = at.y1 - at.y0;
      g.save();
      g.beginPath();
      g.rect(left, top, width, height);
      g.clip();
      g.imageSmoothingEnabled = false;
      g.drawImage(this.last.tile, left + ((at.x0 - v.x0) / (v.x1 - v.x0)) * width, top + ((at.y0 - v.y0) / (v.y1 - v.y0)) * height, (w / (v.x1 - v.x0)) * width, (t / (v.y1 - v.y0)) * height);
      g.restore();
    }
    g.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    this.drawObjects(g);
    this.drawLaunches(g);
    this.drawAxis(g);
    g.strokeStyle = colour("--line");
    g.strokeRect(left - 0.5, top - 0.5, width + 1, height + 1);
  }

  xOf(share) { const { left, width } = this.area; return left + ((share - this.view.x0) / (this.view.x1 - this.view.x0)) * width; }

  yOf(region) { const { top, height } = this.area; return top + ((region / this.source.whole.regions - this.view.y0) / (this.view.y1 - this.view.y0)) * height; }

  /** Names of objects at the left, with a line between two. */
  drawObjects(g) {
    const { left, top, width, height } = this.area;
    let free = top;
    for (const o of this.source.run.objects) {
      const from = Math.max(top, this.yOf(o.first)), to = Math.min(top + height, this.yOf(o.first + o.regions));
      if (to <= top || from >= top + height) continue;
      g.strokeStyle = colour("--line");
      if (from > top) { g.beginPath(); g.moveTo(left - 6, from); g.lineTo(left + width, from); g.stroke(); }
      const middle = (from + to) / 2;
      if (middle < free) continue;
      g.fillStyle = colour("--ink");
      g.textAlign = "right";
      g.textBaseline = "middle";
      let name = o.name;
      while (name.length > 3 && g.measureText(name).width > LEFT - 16) name = `${name.slice(0, -2)}…`.replace("……", "…");
      g.fillText(name, left - 10, middle);
      free = middle + 13;
    }
  }

  shareOf(launch, end) {
    const whole = this.source.whole;
    return this.axis === "time" ? launch[end ? "end" : "start"] / whole.time : launch[end ? "last_touch" : "first_touch"] / whole.touches;
  }

  /** A band of launches at the top, a colour for each name. */
  drawLaunches(g) {
    const { left, width } = this.area, seen = new Map();
    let done = left;
    for (const launch of this.source.run.launches) {
      if (!seen.has(launch.name)) seen.set(launch.name, COLOURS[seen.size % COLOURS.length]);
      const from = Math.max(left, this.xOf(this.shareOf(launch, false))), to = Math.min(left + width, this.xOf(this.shareOf(launch, true)));
      if (to - from <= 0 || to < done + 0.5) continue;
      g.fillStyle = seen.get(launch.name);
      g.globalAlpha = 0.75;
      g.fillRect(from, 3, Math.max(1, to - from - 1), 11);
      g.globalAlpha = 1;
      done = to;
      if (to - from > 8 + g.measureText(launch.name).width) {
        g.fillStyle = "#fff";
        g.textAlign = "left";
        g.textBaseline = "middle";
        g.fillText(launch.name, from + 4, 9);
      }
    }
    g.fillStyle = colour("--soft");
    g.textAlign = "right";
    g.fillText("launches", left - 10, 9);
  }

  drawAxis(g) {
    const { left, top, width, height } = this.area, whole = this.source.whole;
    const unit = this.axis === "time" ? whole.time : whole.touches, show = this.axis === "time" ? duration : short;
    const from = this.view.x0 * unit, to = this.view.x1 * unit;
    const raw = (to - from) / Math.max(2, width / 110), power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
    g.fillStyle = colour("--soft");
    g.strokeStyle = colour("--line");
    g.textAlign = "center";
    g.textBaseline = "top";
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      const x = this.xOf(at / unit);
      g.beginPath(); g.moveTo(x, top + height); g.lineTo(x, top + height + 4); g.stroke();
      g.fillText(step < unit / 1e3 && this.axis === "touches" ? count(at) : show(at), x, top + height + 7);
    }
    g.textAlign = "right";
    g.fillText(this.axis === "time" ? "time" : "touches", left - 24, top + height + 7); // the first mark is centred on the edge
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect(), { left, top, width, height } = this.area;
    const px = (event.clientX - box.left - left) / width, py = (event.clientY - box.top - top) / height;
    return { inside: px >= 0 && px < 1 && py >= 0 && py < 1, band: py < 0, x: this.view.x0 + px * (this.view.x1 - this.view.x0), y: this.view.y0 + py * (this.view.y1 - this.view.y0) };
  }

  launchAt(x) { return this.source.run.launches.find((l) => this.shareOf(l, true) > x); }

  toLaunch(launch) {
    if (!launch) return;
    this.show({ ...this.view, x0: this.shareOf(launch, false), x1: this.shareOf(launch, true) });
  }

  listen() {
    const c = this.canvas;
    c.addEventListener("wheel", (e) => { e.preventDefault(); const p = this.at(e); this.zoom(Math.exp(Math.max(-300, Math.min(300, e.deltaY)) / 400), p.x, p.y, e.shiftKey); }, { passive: false });
    let drag = null;
    c.addEventListener("pointerdown", (e) => { drag = { x: e.clientX, y: e.clientY, view: this.view, moved: false }; c.setPointerCapture(e.pointerId); c.focus(); });
    c.addEventListener("pointermove", (e) => {
      if (!drag) { this.point(e); return; }
      const dx = (e.clientX - drag.x) / this.area.width, dy = (e.clientY - drag.y) / this.area.height;
      if (Math.abs(e.clientX - drag.x) + Math.abs(e.clientY - drag.y) > 3) drag.moved = true;
      if (!drag.moved) return;
      c.classList.add("dragging");
      this.tip.hidden = true;
      const v = drag.view, w = v.x1 - v.x0, t = v.y1 - v.y0;
      this.show({ x0: v.x0 - dx * w, x1: v.x1 - dx * w, y0: v.y0 - dy * t, y1: v.y1 - dy * t });
    });
    c.addEventListener("pointerup", (e) => {
      const clicked = drag && !drag.moved, p = this.at(e);
      drag = null;
      c.classList.remove("dragging");
      if (!clicked) return;
      if (p.band) this.toLaunch(this.launchAt(p.x));
      else if (p.inside) this.clicked(Math.floor(p.y * this.source.whole.regions), p.x);
    });
    c.addEventListener("pointerleave", () => { this.tip.hidden = true; clearTimeout(this.pointing); });
    c.addEventListener("dblclick", () => this.show(WHOLE));
    c.addEventListener("keydown", (e) => this.key(e));
  }

  key(e) {
    const v = this.view, x = (v.x0 + v.x1) / 2, y = (v.y0 + v.y1) / 2;
    const first = this.source.run.launches.findIndex((l) => this.shareOf(l, true) > x), launches = this.source.run.launches;
    const keys = {
      ArrowLeft: () => this.pan(-0.1, 0), ArrowRight: () => this.pan(0.1, 0), ArrowUp: () => this.pan(0, -0.1), ArrowDown: () => this.pan(0, 0.1),
      "+": () => this.zoom(0.7, x, y, false), "=": () => this.zoom(0.7, x, y, e.shiftKey), "-": () => this.zoom(1.43, x, y, false), _: () => this.zoom(1.43, x, y, true), "*": () => this.zoom(0.7, x, y, true),
      0: () => this.show(WHOLE), Home: () => this.show(WHOLE), Enter: () => this.clicked(Math.floor(y * this.source.whole.regions), x),
      ",": () => this.toLaunch(launches[Math.max(0, first - 1)]), ".": () => this.toLaunch(launches[Math.min(launches.length - 1, v.x1 - v.x0 > 0.999 ? 0 : first + 1)]),
    };
    if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    keys[e.key]();
  }

  /** Show what is under the pointer. */
  point(event) {
    clearTimeout(this.pointing);
    const p = this.at(event);
    if (p.band && p.x >= this.view.x0) {
      const launch = this.launchAt(p.x);
      if (launch) this.tell(event, `${launch.name}\n${count(launch.last_touch - launch.first_touch)} touches in ${duration(launch.end - launch.start)}`);
      return;
    }
    if (!p.inside || this.source.against) { this.tip.hidden = true; return; }
    this.pointing = setTimeout(() => guarded(async () => {
      const query = new URLSearchParams({ axis: this.axis, x: p.x, y: p.y, ...this.view, detail: this.detail ? 1 : 0 });
      const cell = await ask(`api/runs/${this.source.key}/cell?${query}`);
      const whose = cell.regions > 1 ? `regions ${cell.region} to ${cell.region + cell.regions - 1}` : `region ${cell.region}`;
      this.tell(event, [`${cell.object}, ${whose}`, cell.launch && `launch ${cell.launch}`, `touches ${count(cell.first_touch)} to ${count(cell.first_touch + cell.touches_per_bin)}, at ${duration(cell.start)}`,
        `${count(cell.touches)} touches of it · ${cell.residency} of ${cell.pages} pages near${cell.middle === undefined ? "" : `, ${cell.middle} in host memory`}`, `${cell.faults} faults · ${cell.evictions} evictions`,
        cell.middle === undefined ? `${cell.prefetched} pages prefetched · ${cell.unused} left unused` : `${cell.far_reads} read from the SSD · ${cell.spills} left host memory`].filter(Boolean).join("\n"));
    }), 90);
  }

  tell(event, text) {
    this.tip.textContent = text;
    this.tip.hidden = false;
    this.tip.style.left = `${Math.min(event.clientX + 14, innerWidth - 330)}px`;
    this.tip.style.top = `${Math.min(event.clientY + 14, innerHeight - 130)}px`;
  }
}

/** A strip of colours with what its ends mean. */
export function legendOf(map) {
  const strip = h("canvas", { width: 120, height: 10 }), g = strip.getContext("2d");
  const kind = map.source.against ? "difference" : map.layer, colours = ramp(kind);
  for (let x = 0; x < 120; x += 1) {
    const c = colours[Math.round((x / 119) * 255)];
    g.fillStyle = `rgb(${c & 255} ${(c >> 8) & 255} ${(c >> 16) & 255})`;
    g.fillRect(x, 0, 1, 10);
  }
  const held = { residency: "near", middle: "in host memory" }[map.layer];
  const top = held ? "all pages" : short(map.top ?? 0);
  const ends = map.source.against ? [`more in B (${top})`, `more in A (${top})`] : ["0", held ? `all pages ${held}` : `${top} per pixel`];
  return h("span", { className: "ramp" }, ends[0], strip, ends[1]);
}
