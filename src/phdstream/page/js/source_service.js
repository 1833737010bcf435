/** The ticks of a running service: asked over its API, and each new one as it comes. */
import { ByteReader } from "./binary.js";
import { readTree } from "./tree.js";
import { byId, number, say, tickName } from "./words.js";

const KEPT = 12, AT_ONCE = 10, RETRY = 3000;

/** Ticks by position, as `FileSource` has them; counts are the service's own. */
export class ServiceSource {
  static async open(shell) {
    const source = new ServiceSource(shell);
    source.head = { ...shell, ...(await source.#about()) };
    source.ticks = source.head.ticks;
    return source;
  }
  constructor(shell) {
    this.shell = shell;
    this.live = true;
    this.token = "";
    this.frames = new Map();
  }
  async #ask(path, options = {}) {
    const headers = { ...(options.headers ?? {}), ...(this.token ? { Authorization: `Bearer ${this.token}` } : {}) };
    return fetch(path, { ...options, headers, credentials: "omit" });
  }
  /** Wait for the first release, and for a token if one is needed. */
  async #about() {
    for (;;) {
      const answer = await this.#ask("v1/page");
      if (answer.ok) return answer.json();
      if (answer.status === 401 || answer.status === 403) await this.#askForToken();
      else {
        byId("live").textContent = say("nothing");
        await new Promise((go) => setTimeout(go, RETRY));
      }
    }
  }
  #askForToken() {
    const form = byId("token");
    byId("token-wrong").textContent = this.token ? say("token_wrong") : "";
    form.hidden = false;
    return new Promise((go) => form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.token = byId("token-value").value.trim();
      form.hidden = true;
      go();
    }, { once: true }));
  }
  async frame(position) {
    const { tick } = this.ticks[position];
    if (!this.frames.has(tick)) {
      const answer = await this.#ask(`v1/page/ticks/${tick}`);
      if (!answer.ok) throw new Error(`${answer.status}`);
      const frame = this.#read(new Uint8Array(await answer.arrayBuffer()));
      frame.areas = this.head.layer ? await this.#areasAt(tick) : [];
      this.frames.set(tick, frame);
      if (this.frames.size > KEPT) this.frames.delete(this.frames.keys().next().value);
    }
    return this.frames.get(tick);
  }
  #read(bytes) {
    const from = new ByteReader(bytes), total = from.f32(), [stay, fresh, gone] = [from.u32(), from.u32(), from.u32()];
    const x = from.u16s(stay + fresh + gone), y = from.u16s(stay + fresh + gone), here = stay + fresh;
    const tree = readTree(bytes.subarray(from.at), this.head.frame, this.head.levels);
    return { x: x.subarray(0, here), y: y.subarray(0, here), fresh: stay, goneX: x.subarray(here), goneY: y.subarray(here), tree, total };
  }
  /** Return the counts of all areas of the layer at a tick. */
  async #areasAt(tick) {
    const polygons = this.head.layer.areas.map(({ shape }) => shape ?? { type: "Polygon", coordinates: [] });
    const body = JSON.stringify({ polygons, first: tick, last: tick });
    const answer = await this.#ask("v1/counts", { method: "POST", body, headers: { "Content-Type": "application/json" } });
    if (!answer.ok) return [];
    const { value, low, high } = await answer.json();
    return polygons.map((_, i) => ({ value: value[0][i], low: low[0][i], high: high[0][i] }));
  }
  /** Return the count of an area of the layer at a moment that was shown. */
  countAt({ index }, position) {
    return this.frames.get(this.ticks[position].tick)?.areas[index] ?? { value: 0, low: 0, high: Infinity };
  }
  /** Tell the counts of an area, those around the moment shown first. */
  async counts(area, tell, at) {
    const ring = (r) => ({ type: "Polygon", coordinates: [[...r, r[0]]] });
    const asked = area.kind === "rectangle" ? { rectangles: [area.sides] } : { polygons: [area.kind === "polygon" ? ring(area.ring) : this.head.layer.areas[area.index].shape] };
    this.asked = asked;
    const starts = [];
    for (let i = 0; i < this.ticks.length; i += AT_ONCE) starts.push(i);
    starts.sort((a, b) => Math.abs(a + AT_ONCE / 2 - at) - Math.abs(b + AT_ONCE / 2 - at));
    for (const i of starts) {
      if (this.asked !== asked) return;
      await this.#countSome(asked, i, Math.min(i + AT_ONCE, this.ticks.length) - 1, tell);
    }
  }
  async #countSome(asked, from, to, tell) {
    const body = JSON.stringify({ ...asked, first: this.ticks[from].tick, last: this.ticks[to].tick });
    const answer = await this.#ask("v1/counts", { method: "POST", body, headers: { "Content-Type": "application/json" } });
    if (!answer.ok) return;
    const found = await answer.json();
    found.ticks.forEach((tick, k) => {
      const position = this.ticks.findIndex((one) => one.tick === tick);
      if (position >= 0) tell(position, { value: found.value[k][0], low: found.low[k][0], high: found.high[k][0] }, true);
    });
  }
  /** Save a tick's points in a format of the service. */
  async save(tick, format, name) {
    const answer = await this.#ask(`v1/releases/${tick}/points?f=${format}`), link = document.createElement("a");
    if (!answer.ok) return;
    link.href = URL.createObjectURL(await answer.blob());
    link.download = name;
    link.click();
  }
  /** Follow the stream of new releases (server-sent events), for as long as the page is open. */
  async listen(page) {
    byId("follow-label").hidden = false;
    for (;;) {
      try {
        const last = this.ticks.at(-1).tick;
        const answer = await this.#ask("v1/stream", { headers: { Accept: "text/event-stream", "Last-Event-ID": `${last}` } });
        if (!answer.ok) throw new Error(`${answer.status}`);
        byId("live").textContent = say("live_on");
        await this.#events(answer.body.getReader(), page);
      } catch {
        byId("live").textContent = say("live_off");
      }
      await new Promise((go) => setTimeout(go, RETRY));
    }
  }
  async #events(reader, page) {
    const text = new TextDecoder();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + text.decode(value, { stream: true })).split(/\r?\n\r?\n/);
      rest = parts.pop();
      for (const part of parts) {
        const data = part.split(/\r?\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
        if (data) await this.#arrived(JSON.parse(data), page);
      }
    }
  }
  async #arrived({ tick, total }, page) {
    if (this.ticks.some((one) => one.tick === tick)) return;
    const answer = await this.#ask("v1/page/labels?tick=" + tick);
    this.ticks.push({ tick, label: answer.ok ? (await answer.json()).label : "" });
    page.counts.push(undefined);
    const last = this.ticks.length - 1;
    byId("live").textContent = say("live_new", { when: tickName(this.ticks[last]), total: number(total) });
    await page.refresh(byId("follow").checked ? { at: last } : {}, true);
    const { counts } = page;
    if (this.asked) await this.#countSome(this.asked, last, last, (position, count) => { counts[position] = count; });
    await page.refresh({}, true);
  }
}
