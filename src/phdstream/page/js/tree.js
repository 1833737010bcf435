/**
 * A release's coarse tree, and its answers: the same as `Release.count` gives for it.
 * The formulas are those of answering.py, share_noise.py, unevenness.py and counts.py in phdstream/release; a test
 * compares them in a browser. `cover(i)` tells which share of node i a question covers.
 */
import { ByteReader } from "./binary.js";

const STRETCH = 1.0, SHARES = 1.2;
const FLAG = { unbiased: 1, noiseOfNodes: 2, error: 4, own: 8, stated: 16 };
/** How much cells cut by a drawn border err together. */
export const ALIKE = 0.55;
/** Standard deviations in an interval of 95%: enough for one Laplace variable and for a sum of many. */
const QUANTILE = -Math.log(0.05) / Math.SQRT2;

/** Return the tree in some bytes; `frame` is the domain's rectangle, `levels` the bits of each level of a box. */
export function readTree(bytes, frame, levels) {
  const from = new ByteReader(bytes), n = from.u32(), flags = from.u32();
  const tree = { n, clustering: from.f32(), leaf: new Uint8Array(n), any: false };
  if (!n) return tree;
  const bits = from.take((n + 7) >> 3);
  const leaves = [];
  for (let i = 0; i < n; i++) if ((bits[i >> 3] >> (7 - (i & 7))) & 1) { tree.leaf[i] = 1; leaves.push(i); }
  tree.leaves = leaves;
  const spread = (values) => { const all = new Float64Array(n); leaves.forEach((i, k) => { all[i] = values[k]; }); return all; };
  tree.count = spread(from.packed(leaves.length, 3));
  tree.variance = spread(from.packed(leaves.length, 2));
  tree.share = from.packed(n, 2);
  tree.unbiased = flags & FLAG.unbiased ? spread(from.packed(leaves.length, 3)) : tree.count.slice();
  tree.ownVariance = flags & FLAG.noiseOfNodes ? from.packed(n, 2) : new Float64Array(n);
  tree.shareError = flags & FLAG.error ? from.packed(n, 2) : tree.share.map((v) => SHARES * v);
  tree.own = flags & FLAG.own ? from.packed(n, 2) : tree.count.slice();
  if (flags & FLAG.stated) {
    tree.measure = from.packed(n, 2);
    stateFamilies(tree, from.planes32(n));
    stateBounds(tree, from, frame);
  } else divide(tree, frame, levels);
  finish(tree);
  return tree;
}

function stateFamilies(tree, parent) {
  tree.parent = parent;
  tree.first = new Uint32Array(tree.n);
  tree.past = new Uint32Array(tree.n);
  for (let i = 1; i < tree.n; i++) {
    if (!tree.past[parent[i]]) tree.first[parent[i]] = i;
    tree.past[parent[i]] = i + 1;
  }
}

function stateBounds(tree, from, [west, south, east, north]) {
  const wide = (east - west) / 65536, high = (north - south) / 65536;
  const [x0, y0, x1, y1] = [0, 1, 2, 3].map(() => from.u16s(tree.n));
  tree.bounds = new Float64Array(4 * tree.n);
  for (let i = 0; i < tree.n; i++) {
    tree.bounds.set([west + x0[i] * wide, south + y0[i] * high, west + (x1[i] + 1) * wide, south + (y1[i] + 1) * high], 4 * i);
  }
}

/** Find the families and edges of a box's nodes: each bit of a level halves a coordinate, in turn. */
function divide(tree, frame, levels) {
  const { n, leaf } = tree, bounds = (tree.bounds = new Float64Array(4 * n)), depth = new Uint8Array(n);
  tree.first = new Uint32Array(n);
  tree.past = new Uint32Array(n);
  tree.parent = new Uint32Array(n);
  const through = [0];
  levels.forEach((bits) => through.push(through.at(-1) + bits));
  bounds.set(frame, 0);
  let next = 1;
  for (let i = 0; i < n; i++) {
    if (leaf[i]) continue;
    const bits = levels[depth[i]];
    tree.first[i] = next;
    for (let k = 0; k < 1 << bits; k++, next++) {
      const box = Array.from(bounds.subarray(4 * i, 4 * i + 4));
      for (let j = 0; j < bits; j++) {
        const axis = (through[depth[i]] + j) % 2, middle = (box[axis] + box[axis + 2]) / 2;
        box[(k >> (bits - 1 - j)) & 1 ? axis : axis + 2] = middle;
      }
      bounds.set(box, 4 * next);
      tree.parent[next] = i;
      depth[next] = depth[i] + 1;
    }
    tree.past[i] = next;
  }
}

/** Sum what inner nodes hold, and find what cut nodes may be off by. */
function finish(tree) {
  const { n, parent, leaf } = tree;
  tree.below = tree.ownVariance.slice();
  for (let i = n - 1; i > 0; i--) {
    for (const column of [tree.count, tree.unbiased, tree.below]) column[parent[i]] += column[i];
  }
  tree.any = tree.share.some((v) => v !== 0) || tree.shareError.some((v) => v !== 0);
  tree.square = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    tree.own[i] = Math.max(tree.own[i], 0);
    tree.square[i] = tree.own[i] ** 2 + (leaf[i] ? tree.variance[i] : tree.ownVariance[i]);
  }
}

/** Return the count that a question's cover tells, with the interval for the true count: {value, low, high}. */
export function answerFrom(tree, cover, alike) {
  if (!tree.n) return { value: 0, low: 0, high: Infinity };
  const sum = { value: 0, unbiased: 0, noise: 0, cut: 0, edge: 0, shares: 0, sharesError: 0 };
  const { covered, share } = descend(tree, 0, cover, sum);
  const part = tree.count[0] > 0 ? covered / tree.count[0] : share;
  const noise = sum.noise + sum.shares + part ** 2 * tree.share[0];
  const error = sum.noise + sum.cut + (alike * sum.edge) ** 2 + sum.sharesError + part ** 2 * tree.shareError[0];
  return around(sum.value, sum.unbiased, tree.any ? noise : sum.noise, error);
}

/** Visit a node: add what it holds of the answer, and return how many of its points, and which share, are covered. */
function descend(tree, i, cover, sum) {
  const share = cover(i);
  if (share <= 0) return { covered: 0, share: 0 };
  const whole = share >= 1, end = whole || tree.leaf[i];
  sum.noise += whole ? tree.below[i] : share ** 2 * tree.ownVariance[i];
  if (!whole && tree.square[i] > 0) {
    const less = Math.min(share, 1 - share);
    const v = tree.square[i] * (less ** (2 - tree.clustering) - less ** 2) + tree.own[i] * less * (1 - less);
    sum.cut += v;
    sum.edge += Math.sqrt(v);
  }
  if (end) {
    sum.value += share * tree.count[i];
    sum.unbiased += share * tree.unbiased[i];
    return { covered: share * tree.count[i], share };
  }
  return { covered: familyOf(tree, i, cover, sum), share };
}

/** Visit a node's children; noise of shares moves points between them, and adds what they do not hold alike. */
function familyOf(tree, i, cover, sum) {
  let all = 0;
  const noise = [0, 0, 0], error = [0, 0, 0];
  for (let k = tree.first[i]; k < tree.past[i]; k++) {
    const { covered, share } = descend(tree, k, cover, sum);
    all += covered;
    const part = tree.count[k] > 0 ? covered / tree.count[k] : share;
    for (let power = 0; power < 3; power++) {
      noise[power] += tree.share[k] * part ** power;
      error[power] += tree.shareError[k] * part ** power;
    }
  }
  sum.shares += Math.max(noise[2] - noise[1] ** 2 / (noise[0] > 0 ? noise[0] : 1), 0);
  sum.sharesError += Math.max(error[2] - error[1] ** 2 / (error[0] > 0 ? error[0] : 1), 0);
  return all;
}

function around(value, unbiased, noise, error) {
  const stderr = Math.sqrt(noise), deviation = Math.sqrt(error), margin = QUANTILE * deviation;
  const noiseLow = Math.min(Math.max(unbiased - QUANTILE * stderr, 0), value);
  const noiseHigh = Math.max(Math.max(unbiased + QUANTILE * stderr, 0), value);
  const small = value + deviation > 0 ? deviation / (value + deviation) : 0;
  return {
    value,
    low: Math.min(Math.max(value - margin, 0), noiseLow),
    high: Math.max(value + margin * (1 + STRETCH * small), noiseHigh),
  };
}
