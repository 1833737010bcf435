/** Which share of a node lies in a rectangle, in a polygon, or in a node: the `cover` that `answerFrom` asks. */

const WHOLE = 1 - 1e-9, NOTHING = 1e-12;

/** Return the cover of a rectangle [west, south, east, north]. */
export function rectangleCover(tree, [west, south, east, north]) {
  const b = tree.bounds;
  return (i) => {
    const k = 4 * i;
    const x = Math.max(0, Math.min(east, b[k + 2]) - Math.max(west, b[k])) / (b[k + 2] - b[k]);
    const y = Math.max(0, Math.min(north, b[k + 3]) - Math.max(south, b[k + 1])) / (b[k + 3] - b[k + 1]);
    return Math.min(1, x * y);
  };
}

/** Return the cover of a polygon, given by its corners [[x, y], …] in order. */
export function polygonCover(tree, ring) {
  const xs = ring.map((p) => p[0]), ys = ring.map((p) => p[1]), b = tree.bounds;
  const limits = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
  return (i) => {
    const box = b.subarray(4 * i, 4 * i + 4);
    if (box[0] > limits[2] || box[2] < limits[0] || box[1] > limits[3] || box[3] < limits[1]) return 0;
    const share = Math.abs(ringArea(clipped(ring, box))) / ((box[2] - box[0]) * (box[3] - box[1]));
    return share > WHOLE ? 1 : share < NOTHING ? 0 : share;
  };
}

/** Return the cover of one node: all of it and of what is below, its share of what is above, nothing else. */
export function nodeCover(tree, node) {
  const size = (i) => (tree.measure ? tree.measure[i]
    : (tree.bounds[4 * i + 2] - tree.bounds[4 * i]) * (tree.bounds[4 * i + 3] - tree.bounds[4 * i + 1]));
  const shares = new Map([[node, 1]]);
  for (let i = node; i; i = tree.parent[i]) shares.set(tree.parent[i], Math.min(size(node) / size(tree.parent[i]), WHOLE));
  return (i) => shares.get(i) ?? 0;
}

/** Return the cell at a place; -1 if there is none. */
export function cellAt(tree, x, y) {
  const holds = (i) => { const b = tree.bounds.subarray(4 * i, 4 * i + 4); return x >= b[0] && y >= b[1] && x <= b[2] && y <= b[3]; };
  if (!tree.n || !holds(0)) return -1;
  let i = 0;
  while (!tree.leaf[i]) {
    let k = tree.first[i];
    while (k < tree.past[i] && !holds(k)) k++;
    if (k === tree.past[i]) return -1;
    i = k;
  }
  return i;
}

/** Tell whether a ring's sides cross: what is inside it would be a matter of taste. */
export function crossesItself(ring) {
  const side = (a, b, c) => Math.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]));
  const next = (i) => ring[(i + 1) % ring.length];
  return ring.some((a, i) => ring.some((c, j) => j > i
    && side(a, next(i), c) * side(a, next(i), next(j)) < 0 && side(c, next(j), a) * side(c, next(j), next(i)) < 0));
}

/** Return a ring cut to a box, side by side (Sutherland and Hodgman); edges along the box have no area. */
function clipped(ring, [west, south, east, north]) {
  let out = ring;
  for (const [axis, limit, sign] of [[0, west, 1], [0, east, -1], [1, south, 1], [1, north, -1]]) {
    const before = out;
    out = [];
    for (let i = 0, j = before.length - 1; i < before.length; j = i++) {
      const [from, to] = [before[j], before[i]];
      const a = sign * (from[axis] - limit), b = sign * (to[axis] - limit);
      if (a < 0 !== b < 0) {
        const t = a / (a - b);
        out.push([from[0] + t * (to[0] - from[0]), from[1] + t * (to[1] - from[1])]);
      }
      if (b >= 0) out.push(to);
    }
    if (!out.length) return out;
  }
  return out;
}

/** Return a ring's signed area. */
function ringArea(ring) {
  if (ring.length < 3) return 0;
  const [ox, oy] = ring[0];  // about a corner, not about the origin: far from it digits would be lost
  let twice = 0;
  for (let i = 0, j = ring.length - 1; i < ring.length; j = i++) {
    twice += (ring[j][0] - ox) * (ring[i][1] - oy) - (ring[i][0] - ox) * (ring[j][1] - oy);
  }
  return twice / 2;
}
