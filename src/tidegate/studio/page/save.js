// Saving what is on the page: pictures and data.
import { h } from "./dom.js";

export function download(name, content, type) {
  const url = content.startsWith?.("data:") ? content : URL.createObjectURL(new Blob([content], { type }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

const quoted = (value) => (/[",\n]/.test(String(value ?? "")) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));

/** Save columns {name: values} as CSV. */
export function saveCsv(name, columns) {
  const names = Object.keys(columns);
  const lines = columns[names[0]].map((_, i) => names.map((n) => quoted(columns[n][i])).join(","));
  download(`${name}.csv`, [names.map(quoted).join(","), ...lines].join("\n") + "\n", "text/csv");
}

export const savePng = (name, canvas) => download(`${name}.png`, canvas.toDataURL("image/png"), "image/png");

/** Save a canvas as SVG: its pixels, in a frame that scales. */
export function saveSvg(name, canvas) {
  const { width, height } = canvas;
  download(`${name}.svg`, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}"><image width="${width}" height="${height}" href="${canvas.toDataURL("image/png")}"/></svg>\n`, "image/svg+xml");
}

/** Buttons that save a picture and its data; each is a function. */
export function saveButtons({ png, svg, csv }) {
  const button = (text, work) => work && h("button", { type: "button", className: "quiet", textContent: text, onclick: work });
  return h("span", {}, button("PNG", png), button("SVG", svg), button("CSV", csv));
}
