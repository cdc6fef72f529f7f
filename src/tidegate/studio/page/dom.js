// Elements, messages, and questions to the server.
import { short } from "./format.js";

/** Make an element: h("a", {href, onclick}, child, …). Texts are never parsed as HTML. */
export function h(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && name !== "list" && name !== "style") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return made;
}

const line = () => document.getElementById("message");

/** Show one line; an empty one hides it. */
export function say(text = "") {
  line().textContent = text;
  line().hidden = !text;
}

export class Refused extends Error {}

/** Ask the server; a refusal or a lost server is one line. */
export async function ask(path, { body, signal, raw } = {}) {
  let answer;
  try {
    answer = await fetch(path, body === undefined ? { signal } : {
      method: "POST", body: JSON.stringify(body), signal,
      headers: { "content-type": "application/json" },
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The server does not answer. Start it again with tidegate studio and open its address; this page goes on then.");
  }
  if (answer.status === 401) throw new Refused("This page has no valid token. Open the address that tidegate studio printed.");
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({}));
    throw new Refused(said.error || `The server refused this (${answer.status}).`);
  }
  return raw ? answer : answer.json();
}

/** Run something that asks the server, and show what it refuses. */
export async function guarded(work) {
  try {
    return await work();
  } catch (error) {
    if (error.name === "AbortError") return undefined;
    say(error.message);
    if (!(error instanceof Refused)) console.error(error);
    return undefined;
  }
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Follow a job until it ends; `show` gets each state. Stops when `here()` is false. */
export async function follow(job, show, here = () => true) {
  for (;;) {
    show(job);
    if (job.state !== "running" || !here()) break;
    await pause(150);
    job = await ask(`api/jobs/${job.number}`);
  }
  if (job.state === "failed") say(job.error);
  return job;
}

/** A progress bar with Cancel, for a job. */
export function progressOf() {
  const bar = h("progress", { max: 1, value: 0 });
  const text = h("span", { className: "soft" });
  let number = null;
  const cancel = h("button", { type: "button", textContent: "Cancel", onclick: () => guarded(() => ask(`api/jobs/${number}/cancel`, { body: {} })) });
  const whole = h("div", { className: "row", hidden: true, role: "group" }, bar, text, cancel);
  const show = (job) => {
    number = job.number;
    whole.hidden = false;
    cancel.hidden = job.state !== "running";
    if (job.total) { bar.max = job.total; bar.value = job.done; } else bar.removeAttribute("value");
    if (job.state !== "running") { bar.max = 1; bar.value = job.state === "done" ? 1 : 0; }
    const touched = job.touches ? `, ${short(job.touches)} touches` : "";
    text.textContent = job.total ? `${job.done} of ${job.total} ${job.unit}${touched}: ${job.state}` : `${job.state}${touched}`;
  };
  return { whole, show };
}
