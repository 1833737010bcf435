/** Drawing a rectangle or a polygon on a map, by pointer or by keyboard (a cross in the middle, Space sets a corner). */
import { byId, element, say } from "./words.js";

/** Lets a reader draw; `done(area)` gets what was drawn. */
export class Drawing {
  constructor(map, done) {
    this.map = map;
    this.done = done;
    this.kind = null;
    this.corners = [];
    this.cross = element("div", { class: "cross", hidden: "" });
    map.getContainer().append(this.cross);
    this.#listen();
  }
  #listen() {
    const { map } = this, box = map.getContainer();
    map.on("mousedown", (e) => this.#down(e.latlng));
    map.on("mousemove", (e) => this.#move(e.latlng));
    map.on("mouseup", (e) => this.#up(e.latlng));
    map.on("click", (e) => this.#click(e.latlng));
    map.on("dblclick", () => this.finish());
    map.on("move", () => { if (this.kind && !this.start) this.#move(map.getCenter()); });
    box.addEventListener("keydown", (e) => this.#key(e), true);
    const touch = (e) => map.containerPointToLatLng(map.mouseEventToContainerPoint(e.changedTouches[0]));
    box.addEventListener("touchstart", (e) => { if (this.kind === "rectangle") this.#down(touch(e)); }, { passive: true });
    box.addEventListener("touchmove", (e) => { if (this.start) { e.preventDefault(); this.#move(touch(e)); } }, { passive: false });
    box.addEventListener("touchend", (e) => { if (this.start) this.#up(touch(e)); });
  }
  /** Begin to draw; the same again ends it, and what has corners enough is counted. */
  begin(kind) {
    const again = this.kind === kind;
    if (again) this.finish();
    this.stop();
    if (again) return;
    this.kind = kind;
    this.map.dragging[kind === "rectangle" ? "disable" : "enable"]();
    this.map.doubleClickZoom.disable();
    this.map.getContainer().classList.add("drawing");
    this.cross.hidden = false;
    byId(kind).setAttribute("aria-pressed", "true");
    byId("drawing").textContent = say(`draw_${kind}_help`);
    this.map.getContainer().focus({ preventScroll: true });
    this.map.getContainer().scrollIntoView({ block: "nearest" });
  }
  /** Stop drawing, whatever is there. */
  stop() {
    this.kind = this.start = null;
    this.corners = [];
    this.map.dragging.enable();
    this.map.doubleClickZoom.enable();
    this.map.getContainer().classList.remove("drawing");
    this.cross.hidden = true;
    this.sketch?.remove();
    byId("drawing").textContent = "";
    for (const id of ["rectangle", "polygon"]) byId(id).setAttribute("aria-pressed", "false");
  }
  #down(at) { if (this.kind === "rectangle") { this.start = at; this.corners = []; } }
  #up(at) {
    if (this.kind !== "rectangle" || !this.start) return;
    const from = this.start;
    this.start = null;
    const a = this.map.latLngToContainerPoint(from), b = this.map.latLngToContainerPoint(at);
    if (Math.abs(a.x - b.x) > 3 && Math.abs(a.y - b.y) > 3) this.#rectangle(from, at);
  }
  #click(at) { if (this.kind === "polygon") { this.corners.push(at); this.#move(at); } }
  #key(event) {
    if (!this.kind) return;
    if (event.key === "Escape") { this.stop(); event.preventDefault(); }
    if (event.key === "Enter") { this.finish(); event.preventDefault(); }
    if (event.key !== " ") return;
    event.preventDefault();
    this.corners.push(this.map.getCenter());
    if (this.kind === "rectangle" && this.corners.length === 2) this.#rectangle(...this.corners);
    else this.#move(this.map.getCenter());
  }
  #move(at) {
    if (!this.kind) return;
    const first = this.start ?? this.corners[0];
    if (!first) return;
    this.sketch?.remove();
    const style = { className: "sketch", dashArray: "4 4", weight: 2, interactive: false };
    this.sketch = this.kind === "rectangle" ? L.rectangle([first, at], style) : L.polygon([...this.corners, at], style);
    this.sketch.addTo(this.map);
  }
  #rectangle(a, b) {
    this.stop();
    const sides = [Math.min(a.lng, b.lng), Math.min(a.lat, b.lat), Math.max(a.lng, b.lng), Math.max(a.lat, b.lat)];
    this.done({ kind: "rectangle", sides });
  }
  /** End a polygon, if it has three corners. */
  finish() {
    if (this.kind !== "polygon") return;
    const ring = this.corners.map(({ lng, lat }) => [lng, lat]).filter(([x, y], i, all) => !i || x !== all[i - 1][0] || y !== all[i - 1][1]);
    if (ring.length < 3) return;
    this.stop();
    this.done({ kind: "polygon", ring });
  }
}
