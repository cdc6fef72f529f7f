// Numbers as people write them, and colours that colour-blind people can tell apart.

export const size = (bytes) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (bytes >= 1024 && i < units.length - 1) { bytes /= 1024; i += 1; }
  return `${i && bytes < 100 ? bytes.toPrecision(3) : Math.round(bytes)} ${units[i]}`;
};
export const duration = (ns) => {
  for (const [unit, each] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) if (ns >= each) return `${(ns / each).toPrecision(3)} ${unit}`;
  return `${Math.round(ns)} ns`;
};
export const count = (n) => Math.round(n).toLocaleString("en");
export const short = (n) => {
  for (const [unit, each] of [["G", 1e9], ["M", 1e6], ["k", 1e3]]) if (Math.abs(n) >= each) return `${+(n / each).toPrecision(3)} ${unit}`;
  return `${+n.toPrecision(3)}`;
};
export const percent = (share) => `${(100 * share).toFixed(1)} %`;

// Okabe and Ito's colours
export const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8c8c8c", "#b5a800"];
export const PARTS = {
  compute: "#009e73", fault_handling: "#d55e00", transfer_in: "#0072b2", transfer_out: "#56b4e9",
  remote_access: "#cc79a7", policy_overhead: "#8c8c8c", storage_read: "#e69f00", storage_write: "#b5a800",
};
export const words = (name) => name.replaceAll("_", " ");
export const isDark = () => document.documentElement.dataset.theme === "dark";
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const mix = (stops, t) => {
  const at = Math.min(stops.length - 2, Math.floor(t * (stops.length - 1)));
  const part = t * (stops.length - 1) - at;
  return [0, 1, 2].map((i) => Math.round(stops[at][i] + part * (stops[at + 1][i] - stops[at][i])));
};
const pack = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
// cividis, made for colour-blind people: from dark blue to yellow
const RISING = [[0, 34, 78], [35, 62, 108], [87, 93, 109], [124, 123, 120], [165, 156, 116], [211, 193, 100], [254, 232, 56]];
const PALER = [[214, 228, 240], [160, 190, 215], [100, 150, 190], [50, 110, 165], [20, 75, 130], [0, 34, 78]];

/** 256 colours for bytes: 0 is empty. "difference": 128 is empty, below it is blue, above orange. */
export function ramp(kind) {
  const empty = isDark() ? [20, 24, 28] : [251, 251, 250];
  const found = new Uint32Array(256);
  for (let i = 0; i < 256; i += 1) {
    if (kind === "difference") {
      const t = Math.min(1, Math.abs(i - 128) / 127);
      const end = i > 128 ? [213, 94, 0] : [0, 114, 178];
      found[i] = pack(mix([empty, end], t === 0 ? 0 : 0.15 + 0.85 * t));
    } else if (i === 0) found[i] = pack(empty);
    else found[i] = pack(mix(isDark() ? RISING : PALER, (i - 1) / 254));
  }
  return found;
}
