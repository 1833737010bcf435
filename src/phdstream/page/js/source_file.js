/** The ticks inside the file: points with when they come and go, and a tree for each tick. */
import { ByteReader, bytesOfBase64, gunzip } from "./binary.js";
import { ALIKE, answerFrom, readTree } from "./tree.js";
import { polygonCover, rectangleCover } from "./shares.js";

/** Ticks by position (0 is the first one here): `frame(position)`, and `counts(area)` over all of them. */
export class FileSource {
  static async open(head, text) {
    const bytes = await gunzip(bytesOfBase64(text));
    return new FileSource(head, bytes);
  }
  constructor(head, bytes) {
    this.head = head;
    this.ticks = head.ticks;
    this.live = false;
    const from = new ByteReader(bytes), blocks = [];
    while (from.at < bytes.length) blocks.push(from.take(from.u32()));
    this.#readPoints(blocks[0]);
    this.#blocks = whole(blocks.slice(1));
    this.#trees = new Map();
  }
  #blocks; #trees;
  #readPoints(block) {
    const from = new ByteReader(block), n = from.u32(), ticks = from.u32();
    const born = Array.from({ length: ticks }, () => from.u32());
    this.x = from.planes16(n);
    for (let i = 1; i < n; i++) this.x[i] += this.x[i - 1];
    this.y = from.planes16(n);
    this.death = from.planes16(n);
    this.starts = [0];
    born.forEach((number) => this.starts.push(this.starts.at(-1) + number));
  }
  tree(position) {
    if (!this.#trees.has(position)) {
      this.#trees.set(position, readTree(this.#blocks[position], this.head.frame, this.head.levels));
      if (this.#trees.size > 1200) this.#trees.delete(this.#trees.keys().next().value);
    }
    return this.#trees.get(position);
  }
  async frame(position) {
    const { starts, death } = this, end = starts[position + 1], old = starts[position];
    const which = [], gone = [];
    for (let i = 0; i < end; i++) {
      if (death[i] > position) which.push(i);
      else if (death[i] === position) gone.push(i);
    }
    const pick = (column, at) => Uint16Array.from(at, (i) => column[i]);
    const fresh = position === 0 ? which.length : which.findIndex((i) => i >= old);
    return {
      x: pick(this.x, which), y: pick(this.y, which), fresh: fresh < 0 ? which.length : fresh,
      goneX: pick(this.x, gone), goneY: pick(this.y, gone), tree: this.tree(position), total: this.head.totals[position],
    };
  }
  /** Tell the counts of an area at all ticks, through `tell(position, {value, low, high})`. */
  async counts(area, tell) {
    this.ticks.forEach((_, position) => tell(position, this.countAt(area, position)));
  }
  countAt(area, position) {
    if (area.kind === "pick") {
      const { value, low, high } = this.head.layer.areas[area.index];
      return { value: value[position], low: low[position], high: high[position] };
    }
    const tree = this.tree(position);
    if (area.kind === "rectangle") return answerFrom(tree, rectangleCover(tree, area.sides), 0);
    return answerFrom(tree, polygonCover(tree, area.ring), ALIKE);
  }
}

/** Return blocks as they were: one that was kept as its difference from the one before begins with 1. */
function whole(blocks) {
  let before = null;
  return blocks.map((block) => {
    const own = block.slice(1);
    if (block[0]) for (let i = 0; i < own.length; i++) own[i] ^= before[i];
    before = own;
    return own;
  });
}
