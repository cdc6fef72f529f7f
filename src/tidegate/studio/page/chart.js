// Line charts by uPlot, with the page's colours, saved as PNG, SVG or CSV.
import uPlot from "./vendor/uPlot.esm.js";
import { h } from "./dom.js";
import { colour, short, size } from "./format.js";
import { download, saveButtons, saveCsv, savePng } from "./save.js";

const BINARY = Array.from({ length: 44 }, (_, i) => 2 ** i); // steps of an axis of bytes
const open = new Set(); // charts on the page, to be drawn again in another theme

/** `series`: [{label, values, colour, fill?, dash?, step?}]; `x`: {label, values, show}.
 *  `marks`: [{name, label, value, moved}], lines at a place of x that are dragged or moved by arrows. */
export class Chart {
  constructor(title, x, series, { height = 130, left = 60, right = 34, unit = "", show = short, sync, legend = true, top, zoomed, log = false, marks = [] } = {}) {
    Object.assign(this, { title, x, series, settings: { height, left, right, unit, show, sync, legend, top, zoomed, log, marks } });
    this.place = h("div");
    const csv = () => saveCsv(title, { [x.label]: x.values, ...Object.fromEntries(series.map((s) => [s.label, s.values])) });
    this.whole = h("div", { className: "chart" }, h("div", { className: "title" }, h("span", { textContent: unit ? `${title} (${unit})` : title }),
      saveButtons({ png: () => savePng(title, this.plot.ctx.canvas), svg: () => download(`${title}.svg`, this.svg(), "image/svg+xml"), csv })), this.place);
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(this.place);
    open.add(this);
  }

  fit() {
    const width = Math.round(this.place.clientWidth);
    if (!width) return;
    if (this.plot) this.plot.setSize({ width, height: this.settings.height });
    else this.make(width);
  }

  make(width) {
    const s = this.settings, axis = { stroke: colour("--soft"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { stroke: colour("--grid"), width: 1, size: 4 }, font: "11px system-ui, 'DejaVu Sans', sans-serif" };
    this.plot = new uPlot({
      width, height: s.height, padding: [8, s.right, 0, 0],
      legend: { show: s.legend, live: true },
      cursor: { drag: { x: true, y: false }, sync: s.sync ? { key: s.sync } : undefined, points: { size: 5 } },
      scales: { x: { time: false, distr: s.log ? 3 : 1, log: 2 }, y: { range: (_, low, high) => [Math.min(0, low || 0), s.top ?? ((high || 1) * 1.05)] } },
      axes: [{ ...axis, size: 24, incrs: this.x.show === size ? BINARY : undefined, values: (_, at) => at.map((v) => (v === null ? "" : this.x.show(v))) }, { ...axis, size: s.left, values: (_, at) => at.map((v) => s.show(v)), space: 24 }],
      series: [{ label: this.x.label, value: (_, v) => (v === null || v === undefined ? "–" : this.x.show(v)) }, ...this.series.map((one) => ({
        label: one.label, stroke: one.colour, width: 1.4, fill: one.fill, dash: one.dash, points: { show: Boolean(one.points), size: 6 },
        paths: one.step ? uPlot.paths.stepped({ align: -1 }) : undefined,
        value: (_, v, i, at) => (v === null || v === undefined ? "–" : s.show(at !== null && one.shown ? one.shown[at] : v)),
      }))],
      hooks: { draw: [() => this.placeMarks()], setSelect: [(u) => { if (s.zoomed && u.select.width > 4) { s.zoomed(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")); u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false); } }] },
    }, [this.x.values, ...this.series.map((one) => one.values)], this.place);
    this.sliders = s.marks.map((mark) => this.slider(mark));
    this.plot.over.append(...this.sliders);
    this.placeMarks();
    if (this.limits) this.range(...this.limits);
  }

  /** A mark as an element: a slider for the mouse, the keyboard and those who read it aloud. */
  slider(mark) {
    const low = this.x.values[0], high = this.x.values.at(-1);
    const move = (value) => mark.moved(Math.min(high, Math.max(low, value)));
    const steps = { ArrowLeft: -0.01, ArrowDown: -0.01, ArrowRight: 0.01, ArrowUp: 0.01, PageDown: -0.1, PageUp: 0.1, Home: -1, End: 1 };
    const made = h("div", { className: "mark", role: "slider", tabIndex: 0, ariaLabel: mark.label, ariaValueMin: low, ariaValueMax: high, title: "drag it, or use the arrows" }, h("span", { textContent: mark.name }));
    made.onkeydown = (e) => { if (steps[e.key]) { e.preventDefault(); move(mark.value + steps[e.key] * (high - low)); } };
    made.onmousedown = (e) => e.stopPropagation(); // the chart would select a range
    made.onpointerdown = (e) => { made.setPointerCapture(e.pointerId); made.focus(); e.stopPropagation(); };
    made.onpointermove = (e) => { if (made.hasPointerCapture(e.pointerId)) move(this.plot.posToVal(e.clientX - this.plot.over.getBoundingClientRect().left, "x")); };
    return made;
  }

  placeMarks() {
    this.sliders?.forEach((made, i) => {
      const { value } = this.settings.marks[i];
      made.style.left = `${this.plot.valToPos(value, "x")}px`;
      made.ariaValueNow = Math.round(value);
      made.ariaValueText = this.x.show(value);
    });
  }

  range(min, max) {
    this.limits = [min, max];
    this.plot?.setScale("x", { min, max });
  }

  data(x, values) {
    this.x.values = x;
    values.forEach((v, i) => { this.series[i].values = v; });
    this.plot?.setData([x, ...values]);
    if (this.limits) this.range(...this.limits);
  }

  again() {
    if (!this.plot) return;
    this.plot.destroy();
    this.plot = null;
    this.fit();
  }

  close() {
    this.observer.disconnect();
    this.plot?.destroy();
    open.delete(this);
  }

  /** The chart as drawn lines. */
  svg() {
    const u = this.plot, { left, top, width, height } = u.bbox, ratio = devicePixelRatio;
    const px = (v, axis) => u.valToPos(v, axis, true) / ratio;
    const paths = this.series.map((one) => {
      const points = this.x.values.map((x, i) => [px(x, "x"), one.values[i] === null ? null : px(one.values[i], "y")]).filter(([, y]) => y !== null && Number.isFinite(y));
      return `<polyline fill="none" stroke="${one.colour}" points="${points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ")}"/>`;
    });
    const text = this.series.map((one, i) => `<text x="${left / ratio + 8 + 150 * i}" y="14" fill="${one.colour}">${one.label.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</text>`);
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${u.width} ${u.height}" font-family="sans-serif" font-size="11"><rect x="${left / ratio}" y="${top / ratio}" width="${width / ratio}" height="${height / ratio}" fill="none" stroke="#aaa"/>${paths.join("")}${text.join("")}</svg>\n`;
  }
}

export const redrawCharts = () => open.forEach((chart) => chart.again());
