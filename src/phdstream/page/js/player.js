/** The time bar: a slider, a step back and forth, play at a chosen speed. */
import { byId, say } from "./words.js";

/** Moves a page through time. While it plays, nothing is announced at every tick. */
export class Player {
  constructor(page) {
    this.page = page;
    byId("previous").append(say("previous"));
    byId("next").append(say("next"));
    byId("tick").addEventListener("input", (e) => this.go(Number(e.target.value)));
    byId("previous").addEventListener("click", () => this.go(page.state.at - 1));
    byId("next").addEventListener("click", () => this.go(page.state.at + 1));
    byId("play").addEventListener("click", () => this.toggle());
    this.#label();
  }
  #label() {
    byId("play").textContent = say(this.playing ? "pause" : "play");
    byId("play").setAttribute("aria-pressed", `${Boolean(this.playing)}`);
  }
  /** Show a moment, if there is one. */
  go(position, quiet = false) {
    const last = this.page.source.ticks.length - 1;
    if (byId("follow")) byId("follow").checked = position >= last;
    return this.page.refresh({ at: Math.max(0, Math.min(last, position)) }, quiet);
  }
  /** Play from here, or from the start if this is the end; or stop. */
  toggle() {
    if (this.playing) { clearTimeout(this.playing); this.playing = null; this.#label(); return; }
    const last = this.page.source.ticks.length - 1;
    const step = async (position) => {
      await this.go(position, true);
      if (!this.playing) return;
      if (position >= last) { this.playing = null; this.#label(); return; }
      this.playing = setTimeout(() => step(position + 1), Number(byId("speed").value));
    };
    this.playing = -1;
    this.#label();
    step(this.page.state.at >= last ? 0 : this.page.state.at + 1);
  }
}
