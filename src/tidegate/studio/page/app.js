// The page: tabs, and the state of the view in the address behind #.
import { guarded, h, say } from "./dom.js";
import * as advice from "./advice.js";
import { redrawCharts } from "./chart.js";
import * as curves from "./curves.js";
import * as live from "./live.js";
import * as pair from "./pair.js";
import * as papers from "./papers.js";
import * as plan from "./plan.js";
import * as race from "./race.js";
import * as run from "./run.js";

const TABS = { race: ["Race", race], run: ["Run", run], pair: ["Side by side", pair], curves: ["Curves", curves], plan: ["Plan", plan], advice: ["Advice", advice], papers: ["Papers", papers], live: ["Live", live] };
let shown = null; // {tab, close}
let written = "";
const visited = {}; // tab → its last address

/** The view in the address: #tab/argument/…?query */
export function place() {
  const [path, query] = location.hash.slice(1).split("?");
  const [tab, ...args] = path.split("/");
  return { tab: TABS[tab] ? tab : "race", args: args.map(decodeURIComponent), query: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

function write(tab, args, query) {
  const kept = Object.entries(query).filter(([, v]) => v !== undefined && v !== null && v !== "");
  const asked = new URLSearchParams(kept).toString();
  written = `#${[tab, ...args.map(encodeURIComponent)].join("/")}${asked ? `?${asked}` : ""}`;
  visited[tab] = written;
  if (location.hash !== written) history.replaceState(null, "", written);
}

async function route() {
  if (location.hash === written && shown) return;
  const { tab, args, query } = place();
  shown?.close?.();
  say();
  document.querySelectorAll("#tabs a").forEach((a) => { a.setAttribute("aria-selected", a.dataset.tab === tab); });
  document.title = `${TABS[tab][0]} · Tidegate Studio`;
  const main = document.getElementById("main");
  const view = h("div"); // a view that is left while it waits for the server fills nothing any more
  main.replaceChildren(view);
  main.dataset.tab = tab;
  written = location.hash;
  visited[tab] = location.hash;
  const now = (shown = { tab });
  const here = () => shown === now;
  await guarded(async () => { now.close = await TABS[tab][1].show(view, { args, query, here, write: (a, q) => here() && write(tab, a, q) }); });
  if (!here()) now.close?.();
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  localStorage.setItem("tidegate-theme", name);
  redrawCharts();
  window.dispatchEvent(new Event("themed"));
}

for (const [tab, [name]] of Object.entries(TABS)) {
  const link = h("a", { href: `#${tab}`, role: "tab", textContent: name, onclick: () => { link.href = visited[tab] || `#${tab}`; } });
  link.dataset.tab = tab;
  document.getElementById("tabs").append(link);
}
theme(localStorage.getItem("tidegate-theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
document.getElementById("theme").onclick = () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
document.getElementById("copy").onclick = async (e) => {
  await navigator.clipboard.writeText(location.href);
  e.target.textContent = "Copied";
  setTimeout(() => { e.target.textContent = "Copy link"; }, 1200);
};
addEventListener("hashchange", route);
route();
