/** What is promised, in plain words: for whom, how much, since when, what it means, what to expect, what not. */
import { byId, element, say } from "./words.js";

const SHARES = { small: "0.03%", medium: "0.3%", large: "3%" };

/** Return a length of time in words. */
function every(seconds) {
  for (const [name, size] of [["day", 86400], ["hour", 3600]]) {
    if (seconds === size) return say(`every_${name}`);
    if (seconds % size === 0) return say(`every_${name}s`, { n: seconds / size });
  }
  return seconds % 60 ? say("every_seconds", { n: seconds }) : say("every_minutes", { n: seconds / 60 });
}

/** Say what a stream promises. */
export function showPromise(head, ticks) {
  const p = head.promise, type = ["event", "record", "user"].includes(p.unit.type) ? p.unit.type : "other";
  const unit = say(`unit_${type}`, p.unit), lines = [];
  if (head.simulated) lines.push(["strong", say("promise_simulated")]);
  else {
    const odds = p.odds < 100 ? p.odds.toFixed(2) : p.odds.toExponential(1), sure = `${(100 * p.sure).toFixed(p.sure > 0.99 ? 2 : 0)}%`;
    lines.push(["p", say("promise_private", { epsilon: p.epsilon, unit })]);
    if (p.unproved) lines.push(["p", say("promise_unproved", p)]);
    lines.push(["p", say("promise_person", { odds, sure, thing: type === "other" ? say("thing_event") : say(`thing_${type}`) })]);
  }
  const known = p.since && p.every_seconds;
  lines.push(["p", say(known ? "since" : "since_unknown", { since: p.since, ticks: ticks.length, every: known ? every(p.every_seconds) : "" })]);
  if (p.window) lines.push(["p", say("window", p)]);
  const made = lines.map(([tag, text]) => element("p", {}, tag === "strong" ? element("strong", {}, text) : text));
  byId("promise-text").replaceChildren(...made, ...accuracy(p), ...limits(head));
}

function accuracy(p) {
  const rows = Object.entries(p.errors).map(([size, error]) =>
    element("li", {}, say("accuracy_row", { size: say(`size_${size}`), share: SHARES[size], error: `${Math.round(100 * error)}%` })));
  return [element("h3", {}, say("accuracy")), element("ul", {}, ...rows), ...(p.warning ? [element("p", {}, p.warning)] : [])];
}

function limits(head) {
  const keys = ["limit_synthetic", "limit_small", "limit_groups", "limit_time"];
  if (head.promise.by_rows) keys.push("limit_rows");
  const items = [...keys, "limit_known"].map((key) => element("li", {}, say(key, head.promise)));
  if (head.kind === "file") items.push(element("li", {}, say("limit_coarse", { least: Math.max(20, Math.round((head.totals.at(-1) ?? 0) / 1500)) })));
  return [element("h3", {}, say("limits")), element("ul", {}, ...items)];
}
