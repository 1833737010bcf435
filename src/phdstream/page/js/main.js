/** The page: its parts put together. What is shown is a small state; every change of it goes through `refresh`. */
import { FileSource } from "./source_file.js";
import { ServiceSource } from "./source_service.js";
import { Plane } from "./plane.js";
import { MapView } from "./map_view.js";
import { Drawing } from "./drawing.js";
import { drawChart, drawTable, tableOverTime } from "./chart.js";
import { addDownloads } from "./offers.js";
import { readLink, writeLink } from "./link.js";
import { cellCounts } from "./painting.js";
import { crossesItself } from "./shares.js";
import { showPromise } from "./promise.js";
import { Player } from "./player.js";
import { byId, element, number, say, setTexts, tickName } from "./words.js";

const MOST_ROWS = 50;

class Page {
  constructor(source) {
    this.source = source;
    this.head = source.head;
    const link = readLink(), position = (tick) => source.ticks.findIndex((one) => one.tick === tick);
    const last = source.ticks.length - 1, found = position(link.tick);
    this.state = { at: found < 0 ? last : found, second: Math.max(-1, position(link.second)), show: link.show ?? "points", changes: link.changes, area: this.#possible(link.area) };
    this.counts = [];
    this.plane = new Plane(this.head);
    const options = () => this.state, picked = (index) => this.ask({ kind: "pick", index });
    this.views = [new MapView(byId("map"), this.head, this.plane, options, picked)];
    if (link.map) this.views[0].map.setView([link.map[0], link.map[1]], link.map[2], { animate: false });
    this.views[0].map.on("moveend", () => this.remember());
    this.views[0].countOfArea = (index) => this.source.countAt({ kind: "pick", index }, this.state.at);
    this.drawing = new Drawing(this.views[0].map, (area) => this.ask(area));
    this.player = new Player(this);
    this.#controls();
    addDownloads(this);
    showPromise(this.head, source.ticks);
  }
  #possible(area) {
    if (area?.kind === "polygon" && crossesItself(area.ring)) return null;
    return area?.kind === "pick" && !this.head.layer?.areas[area.index] ? null : area;
  }
  #controls() {
    const on = (id, event, act) => byId(id).addEventListener(event, act);
    on("show", "change", (e) => this.refresh({ show: e.target.value }));
    on("changes", "change", (e) => this.refresh({ changes: e.target.checked }));
    on("compare", "change", (e) => this.refresh({ second: e.target.checked ? 0 : -1 }));
    on("tick-b", "input", (e) => this.refresh({ second: Number(e.target.value) }));
    for (const kind of ["rectangle", "polygon"]) on(kind, "click", () => this.drawing.begin(kind));
    on("clear", "click", () => { this.drawing.stop(); this.ask(null); });
    on("use-view", "click", () => {
      const b = this.views[0].map.getBounds();
      this.ask({ kind: "rectangle", sides: [b.getWest(), b.getSouth(), b.getEast(), b.getNorth()] });
    });
    on("sides", "submit", (e) => { e.preventDefault(); this.#typed(); });
    on("pick", "change", (e) => this.ask(e.target.value === "" ? null : { kind: "pick", index: Number(e.target.value) }));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.refresh({}));
    if (this.head.layer) {
      byId("pick-row").hidden = byId("all-areas").hidden = false;
      byId("pick").replaceChildren(element("option", { value: "" }, say("pick_none")),
        ...this.head.layer.areas.map(({ name }, i) => element("option", { value: i }, name)));
    }
    const alone = this.head.kind === "file" && this.source.ticks.length === 1;  // no other moment will come
    byId("time-bar").hidden = byId("changes").parentElement.hidden = byId("compare").parentElement.hidden = alone;
    byId("approximate").hidden = !(this.head.kind === "file" && !this.head.levels);
    for (const id of ["all-cells", "all-areas"]) on(id, "toggle", () => this.#tables());
  }
  #typed() {
    const sides = ["west", "south", "east", "north"].map((id) => parseFloat(byId(id).value.replace(",", ".")));
    if (sides.every(Number.isFinite) && sides[0] < sides[2] && sides[1] < sides[3]) this.ask({ kind: "rectangle", sides });
    else byId("west").focus();
  }
  /** Show what has changed in the state. */
  async refresh(change, quiet = false) {
    Object.assign(this.state, change);
    const { state, source } = this, run = (this.run = (this.run ?? 0) + 1);
    const frame = await source.frame(state.at);
    const other = state.second >= 0 ? await source.frame(state.second) : null;
    if (run !== this.run) return;  // a later change is on its way
    this.#second(state.second >= 0);
    this.frame = frame;
    this.views[0].show(frame);
    if (other) this.views[1].show(other);
    this.#words(frame, other);
    this.#answer(quiet);
    this.#tables();
    this.remember();
  }
  #second(wanted) {
    byId("map-b").hidden = byId("bar-b").hidden = !wanted;
    if (wanted && !this.views[1]) {
      const view = new MapView(byId("map-b"), this.head, this.plane, () => this.state, (index) => this.ask({ kind: "pick", index }));
      view.countOfArea = (index) => this.source.countAt({ kind: "pick", index }, this.state.second);
      this.views[1] = view;
      this.#together(this.views[0].map, view.map);
      this.#together(view.map, this.views[0].map);
    }
    const changed = byId("map").dataset.wide !== `${!wanted}`;
    byId("map").dataset.wide = `${!wanted}`;
    if (!changed) return;
    for (const view of this.views) view.map.invalidateSize({ animate: false });
    if (wanted) this.views[1].map.setView(this.views[0].map.getCenter(), this.views[0].map.getZoom(), { animate: false });
    this.views.forEach((view) => view.outline(this.state.area));
  }
  #together(one, other) {
    one.on("moveend", () => {
      const same = other.getZoom() === one.getZoom() && other.latLngToContainerPoint(one.getCenter()).distanceTo(other.getSize().divideBy(2)) < 2;
      if (!same && this.state.second >= 0) other.setView(one.getCenter(), one.getZoom(), { animate: false });
    });
  }
  #words(frame, other) {
    const { state, source } = this, when = (i) => tickName(source.ticks[i]);
    const slider = byId("tick");
    slider.max = byId("tick-b").max = source.ticks.length - 1;
    slider.value = state.at;
    slider.setAttribute("aria-valuetext", when(state.at));
    byId("now").textContent = say("shown", { when: when(state.at), total: number(frame.total) })
      + (state.changes ? ` ${say("changed", { came: number(frame.x.length - frame.fresh), went: number(frame.goneX.length) })}` : "");
    if (other) {
      byId("tick-b").value = state.second;
      byId("tick-b").setAttribute("aria-valuetext", when(state.second));
      byId("now-b").textContent = say("shown", { when: when(state.second), total: number(other.total) });
    }
    byId("show").value = state.show;
    byId("changes").checked = state.changes;
    byId("compare").checked = state.second >= 0;
    const legend = [say(`legend_${state.show}`)];
    if (state.changes) legend.push(element("span", { class: "swatch new" }), say("legend_changes"), element("span", { class: "swatch gone" }), say("legend_gone"));
    byId("legend").replaceChildren(...legend);
  }
  /** Ask how many points were in an area, at all ticks; null for the whole map. */
  async ask(area) {
    if (area?.kind === "polygon" && crossesItself(area.ring)) {
      byId("drawing").textContent = say("crossing");
      return;
    }
    this.state.area = area;
    this.views.forEach((view) => view.outline(area));
    byId("pick").value = area?.kind === "pick" ? area.index : "";
    const sides = area?.kind === "rectangle" ? area.sides : ["", "", "", ""];
    ["west", "south", "east", "north"].forEach((id, i) => { byId(id).value = sides[i] === "" ? "" : Number(sides[i].toPrecision(8)); });
    const [west, south, east, north] = this.head.frame, wanted = area ?? { kind: "rectangle", sides: [west, south, east, north] };
    const counts = (this.counts = new Array(this.source.ticks.length).fill(undefined));
    await this.source.counts(wanted, (position, count, more = false) => {
      counts[position] = count;
      if (more && counts === this.counts) this.#answer(true);
    }, this.state.at);
    if (counts === this.counts) { this.#answer(false); this.remember(); }
  }
  get areaName() {
    const { area } = this.state;
    return !area ? say("whole") : area.kind === "pick" ? this.head.layer.areas[area.index].name : say(area.kind);
  }
  #answer(quiet) {
    const { state, counts, source } = this, name = this.areaName;
    const sentence = (i) => say("answer", { name, when: tickName(source.ticks[i]), value: number(counts[i].value), low: number(counts[i].low), high: number(counts[i].high) });
    const moments = state.second >= 0 ? [state.at, state.second] : [state.at];
    byId("answer").setAttribute("aria-live", quiet ? "off" : "polite");
    if (counts[state.at]) {
      const first = sentence(state.at);
      byId("answer").textContent = moments.length > 1 && counts[state.second] ? say("answer_two", { first, second: sentence(state.second) }) : first;
    }
    byId("chart").replaceChildren(drawChart(counts, source.ticks, moments, name));
    byId("over-time-table").replaceChildren(tableOverTime(counts, source.ticks, moments, name));
  }
  #tables() {
    if (!this.frame) return;
    const heads = [say("name"), say("count"), say("low"), say("high")];
    const row = (name, { value, low, high }) => [name, number(value), number(low), number(high)];
    if (byId("all-areas").open && this.head.layer) {
      const rows = this.head.layer.areas.map(({ name }, index) => row(name, this.source.countAt({ kind: "pick", index }, this.state.at)));
      byId("areas-table").replaceChildren(drawTable(heads, rows, tickName(this.source.ticks[this.state.at])));
    }
    if (byId("all-cells").open && this.frame.tree.n) {
      const tree = this.frame.tree, cells = [...cellCounts(tree)].sort((a, b) => b.value - a.value), short = (v) => Number(v.toPrecision(7));
      const rows = cells.slice(0, MOST_ROWS).map((c) => row(Array.from(tree.bounds.subarray(4 * c.i, 4 * c.i + 4), short).join(", "), c));
      byId("cells-table").replaceChildren(drawTable(heads, rows, say("rows_shown", { n: rows.length, all: cells.length })));
    }
  }
  /** Put what is shown into the address. */
  remember() {
    const { state, source } = this, { map } = this.views[0], centre = map.getCenter();
    writeLink({
      ...state, tick: source.ticks[state.at].tick, second: state.second >= 0 ? source.ticks[state.second].tick : undefined,
      map: [centre.lat, centre.lng, map.getZoom()],
    });
  }
}

function fillTexts(head) {
  setTexts(head.texts);
  document.querySelectorAll("[data-text]").forEach((one) => { one.textContent = say(one.dataset.text); });
  for (const [id, key] of [["map", "map"], ["map-b", "map_b"], ["time-bar", "time"], ["over-time-table", "table_over_time"], ["areas-table", "table_areas"], ["cells-table", "table_cells"]]) byId(id).setAttribute("aria-label", say(key));
}

/** Wait until an element has a size: a hidden tab of a notebook, or a frame far down in one, has none yet. */
function laidOut(part) {
  return new Promise((done) => {
    const watch = new ResizeObserver(() => {
      if (!part.clientWidth || !part.clientHeight) return;
      watch.disconnect();
      done();
    });
    watch.observe(part);
  });
}

async function start() {
  const shell = JSON.parse(byId("head").textContent);
  fillTexts(shell);
  const source = shell.kind === "file" ? await FileSource.open(shell, byId("content").textContent) : await ServiceSource.open(shell);
  const { head } = source;
  byId("title").textContent = head.title || say("title");
  document.title = (head.simulated ? `[${head.privacy}] ` : "") + (head.title || say("title"));
  byId("simulated").hidden = !head.simulated;
  byId("made").textContent = say("made", { version: head.promise.version });
  await laidOut(byId("map"));
  const page = new Page(source);
  globalThis.page = page;
  await page.refresh({});
  await page.ask(page.state.area);
  document.body.dataset.ready = "yes";
  source.listen?.(page);
}

start().catch((error) => {
  byId("about").textContent = say("failed", { why: error.message });
  document.body.dataset.ready = "failed";
  throw error;
});
