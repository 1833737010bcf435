/** A count over time: a line in its band of uncertainty, and the same as a table. */
import { element, number, say, tickName } from "./words.js";

const NS = "http://www.w3.org/2000/svg", WIDE = 560, HIGH = 230, LEFT = 52, BOTTOM = 26, TOP = 10;

function shape(tag, attributes, text = "") {
  const made = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

/** Return a round number of at least x: 1, 2 or 5 with zeros. */
function roundUp(x) {
  const ten = 10 ** Math.floor(Math.log10(Math.max(x, 1e-9)));
  return [1, 2, 5, 10].map((k) => k * ten).find((k) => k >= x);
}

/** Return the chart of counts (undefined where not known yet), with the moments shown marked. */
export function drawChart(counts, ticks, moments, name) {
  const svg = shape("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": `${say("chart")}: ${name}` });
  const known = counts.map((c, i) => [i, c]).filter(([, c]) => c);
  if (!known.length) return svg;
  const finite = known.map(([, c]) => (Number.isFinite(c.high) ? c.high : c.value));
  const step = roundUp(Math.max(...finite, 1) / 4), top = step * Math.ceil(Math.max(...finite, 1) / step);
  const x = (i) => LEFT + ((WIDE - LEFT - 10) * (counts.length > 1 ? i / (counts.length - 1) : 0.5));
  const y = (v) => TOP + (HIGH - BOTTOM - TOP) * (1 - Math.min(v, top) / top);
  for (let v = 0; v <= top; v += step) {
    svg.append(shape("line", { x1: LEFT, x2: WIDE - 10, y1: y(v), y2: y(v), class: "axis" }));
    svg.append(shape("text", { x: LEFT - 6, y: y(v) + 4, "text-anchor": "end" }, number(v)));
  }
  const last = counts.length - 1;
  for (const i of new Set([0, Math.floor(last / 2), last])) {
    const anchor = i === 0 && last > 0 ? "start" : i === last && last > 0 ? "end" : "middle";
    svg.append(shape("text", { x: x(i), y: HIGH - 8, "text-anchor": anchor }, ticks[i].label || `${ticks[i].tick}`));
  }
  const upper = known.map(([i, c]) => `${x(i)},${y(c.high)}`), lower = known.map(([i, c]) => `${x(i)},${y(c.low)}`);
  svg.append(shape("polygon", { points: [...upper, ...lower.reverse()].join(" "), class: "band" }));
  svg.append(shape("polyline", { points: known.map(([i, c]) => `${x(i)},${y(c.value)}`).join(" "), class: "line" }));
  moments.forEach((i, k) => {
    svg.append(shape("line", { x1: x(i), x2: x(i), y1: TOP, y2: HIGH - BOTTOM, class: k ? "now b" : "now" }));
    if (counts[i]) svg.append(shape("circle", { cx: x(i), cy: y(counts[i].value), r: 4 }));
  });
  return svg;
}

/** Return a table of rows of texts; the first column heads each row. */
export function drawTable(heads, rows, caption, marked = new Set()) {
  const body = rows.map((row, i) => element("tr", marked.has(i) ? { class: "now" } : {},
    element("th", { scope: "row" }, row[0]), ...row.slice(1).map((cell) => element("td", {}, cell))));
  return element("table", {}, element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
    element("tbody", {}, ...body));
}

/** Return the counts over time as a table. */
export function tableOverTime(counts, ticks, moments, name) {
  const rows = counts.map((c, i) => [tickName(ticks[i]), ...(c ? [c.value, c.low, c.high].map(number) : ["…", "…", "…"])]);
  return drawTable([say("when"), say("count"), say("low"), say("high")], rows, name, new Set(moments));
}
