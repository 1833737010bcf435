/** One map: the ground, the areas of a layer, the canvas of a tick, and what is under the pointer. */
import { canvasLayer } from "./canvas_layer.js";
import { paint } from "./painting.js";
import { cellAt, nodeCover } from "./shares.js";
import { answerFrom } from "./tree.js";
import { element, number, say } from "./words.js";

/** A map of one moment. `options()` tells what to show; `picked(index)` is told which area was clicked. */
export class MapView {
  constructor(container, head, plane, options, picked) {
    this.head = head;
    this.plane = plane;
    this.frame = null;
    this.map = L.map(container, {
      crs: plane.crs, zoomSnap: 0.25, zoomAnimation: false, fadeAnimation: false, inertia: false, attributionControl: false,
      maxBoundsViscosity: 0.5, boxZoom: false, minZoom: -30, maxZoom: 30,
    });
    this.map.fitBounds(plane.bounds);
    const fit = this.map.getBoundsZoom(plane.bounds);
    this.map.setMinZoom(fit - 2).setMaxZoom(fit + 9);
    if (!head.outline && !head.tiles) container.classList.add("plain");
    this.#ground();
    this.layer = canvasLayer((canvas, corner, ratio) => paint(canvas, plane.pixels(this.map, corner, ratio), this.frame, { ...options(), ratio }));
    this.layer.addTo(this.map);
    this.#areas(picked);
    this.#hover(options);
    if (head.simulated) container.append(element("div", { class: "mark", "aria-hidden": "true" }, head.privacy));
  }
  #ground() {
    const { map, head, plane } = this;
    map.createPane("ground").style.zIndex = 300;
    const renderer = L.svg({ pane: "ground", padding: 0.5 });
    if (head.tiles && head.degrees) L.tileLayer(head.tiles, { pane: "ground" }).addTo(map);
    if (head.outline && !head.tiles) L.geoJSON(head.outline, { interactive: false, style: { className: /Polygon/.test(head.outline.type) ? "land" : "street", renderer, weight: 1 } }).addTo(map);
    L.rectangle(plane.bounds, { className: "frame", renderer, interactive: false, fill: false, weight: 1 }).addTo(map);
  }
  #areas(picked) {
    const { map, head } = this;
    if (!head.layer) return;
    map.createPane("areas").style.zIndex = 450;
    const renderer = L.svg({ pane: "areas", padding: 0.5 });
    head.layer.areas.forEach(({ shape }, index) => {
      if (!shape) return;
      L.geoJSON(shape, { style: { className: "ward", renderer, weight: 1 } }).addTo(map)
        .on("click", (event) => { if (!map.getContainer().classList.contains("drawing")) { L.DomEvent.stop(event); picked(index); } })
        .on("mouseover", () => { this.over = index; }).on("mouseout", () => { this.over = null; });
    });
  }
  #hover() {
    const { map } = this, tip = element("div", { class: "hover", hidden: "" });
    map.getContainer().append(tip);
    let wanted = null;
    const show = () => {
      const event = wanted, text = event && this.textAt(event.latlng);
      wanted = null;
      tip.hidden = !text;
      if (!text) return;
      tip.textContent = text;
      const p = event.containerPoint, size = map.getSize();
      tip.style.left = `${Math.min(p.x + 14, size.x - 180)}px`;
      tip.style.top = `${Math.min(p.y + 14, size.y - 40)}px`;
    };
    map.on("mousemove", (event) => { if (!wanted) requestAnimationFrame(show); wanted = event; });
    map.on("mouseout dragstart", () => { tip.hidden = true; wanted = null; });
  }
  /** Return what to say of a place: the count of its cell, or of the layer's area there. */
  textAt({ lng, lat }) {
    const tree = this.frame?.tree, said = [];
    if (this.over != null && this.countOfArea) said.push(`${this.head.layer.areas[this.over].name}: ${hovered(this.countOfArea(this.over))}`);
    else if (tree?.n) {
      const cell = cellAt(tree, lng, lat);
      if (cell >= 0) said.push(hovered(answerFrom(tree, nodeCover(tree, cell), 0)));
    }
    return said.join("\n");
  }
  /** Show a tick. */
  show(frame) { this.frame = frame; this.layer.redraw(); }
  /** Outline the area that is asked about. */
  outline(area) {
    this.marked?.remove();
    const style = { className: "asked", weight: 3, interactive: false };
    if (area?.kind === "rectangle") this.marked = L.rectangle([[area.sides[1], area.sides[0]], [area.sides[3], area.sides[2]]], style);
    else if (area?.kind === "polygon") this.marked = L.polygon(area.ring.map(([x, y]) => [y, x]), style);
    else if (area?.kind === "pick") this.marked = L.geoJSON(this.head.layer.areas[area.index].shape, { style });
    else return;
    this.marked.addTo(this.map);
  }
}

function hovered({ value, low, high }) {
  return say("hover", { value: number(value), low: number(low), high: number(high) });
}
