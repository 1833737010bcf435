/** A link to every view: what is shown, as the fragment of the page's address; nothing of it reaches a server. */

/** Return the view that the address names, as far as it does. */
export function readLink() {
  const said = new URLSearchParams(location.hash.slice(1)), numbers = (key) => (said.get(key) ?? "").split(",").map(Number);
  const view = {};
  const whole = (key) => (/^\d{1,9}$/.test(said.get(key) ?? "") ? Number(said.get(key)) : undefined);
  view.tick = whole("tick");
  view.second = whole("second");
  if (["points", "cells", "density"].includes(said.get("show"))) view.show = said.get("show");
  view.changes = said.get("changes") === "1";
  const map = numbers("map");
  if (map.length === 3 && map.every(Number.isFinite)) view.map = map;
  view.area = readArea(said, numbers);
  return view;
}

function readArea(said, numbers) {
  const rectangle = numbers("rectangle"), polygon = numbers("polygon");
  if (said.has("rectangle") && rectangle.length === 4 && rectangle.every(Number.isFinite)) return { kind: "rectangle", sides: rectangle };
  if (said.has("polygon") && polygon.length >= 6 && polygon.length % 2 === 0 && polygon.every(Number.isFinite)) {
    return { kind: "polygon", ring: polygon.flatMap((x, i) => (i % 2 ? [] : [[x, polygon[i + 1]]])) };
  }
  return /^\d{1,6}$/.test(said.get("area") ?? "") ? { kind: "pick", index: Number(said.get("area")) } : null;
}

/** Whether the page has an address of its own: inside a notebook it has none. */
export function hasAddress() {
  return location.protocol !== "about:";
}

/** Put a view into the address, if there is one. */
export function writeLink({ tick, second, show, changes, map, area }) {
  if (!hasAddress()) return;
  const short = (x) => Number(x.toPrecision(9)), said = { tick, show };
  if (second !== undefined) said.second = second;
  if (changes) said.changes = 1;
  if (map) said.map = map.map(short).join(",");
  if (area?.kind === "rectangle") said.rectangle = area.sides.map(short).join(",");
  if (area?.kind === "polygon") said.polygon = area.ring.flat().map(short).join(",");
  if (area?.kind === "pick") said.area = area.index;
  history.replaceState(null, "", `#${new URLSearchParams(said).toString().replaceAll("%2C", ",")}`);
}
