/** What a canvas shows of a tick: points, what changed, cells with counts, density. Pixels are set directly: fast. */
import { answerFrom } from "./tree.js";
import { nodeCover } from "./shares.js";

const LIGHT = { point: [11, 87, 164], fresh: [211, 84, 0], gone: [125, 60, 152], ink: "#1b1f24", cell: "#0b57a4", halo: "#ffffff" };
const DARK = { point: [140, 194, 255], fresh: [255, 159, 67], gone: [214, 150, 240], ink: "#ffffff", cell: "#8cc2ff", halo: "#14181d" };
const colours = () => (matchMedia("(prefers-color-scheme: dark)").matches ? DARK : LIGHT);

/** Paint a tick on a canvas; `at` tells pixels, see `Plane.pixels`. */
export function paint(canvas, at, frame, options) {
  const context = canvas.getContext("2d"), { width, height } = canvas;
  context.clearRect(0, 0, width, height);
  if (!frame) return;
  if (options.show === "cells") paintCells(context, at, frame.tree, options);
  else if (options.show === "density") paintDensity(context, at, frame);
  if (options.show === "points" || options.changes) paintPoints(context, at, frame, options);
}

/** Set points as small squares: the more of them on a pixel, the less of the ground is seen. */
function paintPoints(context, at, frame, { show, changes, ratio }) {
  const { width, height } = context.canvas, c = colours(), n = frame.x.length;
  const under = context.getImageData(0, 0, width, height), pixels = new Uint32Array(under.data.buffer);
  const side = Math.max(1, Math.round((n > 60000 ? 1 : n > 6000 ? 1.6 : 2.6) * ratio));
  if (show === "points") {
    const here = new Uint8Array(width * height);
    spots(at, frame.x, frame.y, 0, changes ? frame.fresh : n, width, height, side, (k) => { if (here[k] < 15) here[k]++; });
    const shades = Uint32Array.from({ length: 16 }, (_, k) => colour(c.point, 255 * (1 - 0.62 ** k)));
    for (let k = 0; k < here.length; k++) if (here[k]) pixels[k] = shades[here[k]];
  }
  if (changes) {
    const [gone, fresh] = [colour(c.gone, 255), colour(c.fresh, 255)];
    spots(at, frame.goneX, frame.goneY, 0, frame.goneX.length, width, height, side, (k) => { pixels[k] = gone; });
    spots(at, frame.x, frame.y, frame.fresh, n, width, height, side, (k) => { pixels[k] = fresh; });
  }
  context.putImageData(under, 0, 0);
}

const colour = ([r, g, b], alpha) => ((alpha << 24) | (b << 16) | (g << 8) | r) >>> 0;

/** Call `set` with the pixels of some points. */
function spots(at, xs, ys, from, to, width, height, side, set) {
  const { rows, origin, step } = at;
  for (let i = from; i < to; i++) {
    const x = (origin + xs[i] * step) | 0, y = rows[ys[i]];
    if (x < 0 || y < 0 || x >= width - side || y >= height - side) continue;
    for (let dy = 0, k = y * width + x; dy < side; dy++, k += width) for (let dx = 0; dx < side; dx++) set(k + dx);
  }
}

/** Return each cell's count with interval; worked out once a tree. */
export function cellCounts(tree) {
  tree.counts ??= (tree.leaves ?? []).map((i) => ({ i, ...answerFrom(tree, nodeCover(tree, i), 0) }));
  return tree.counts;
}

function paintCells(context, at, tree, { ratio }) {
  const cells = cellCounts(tree), c = colours();
  const sizes = cells.map(({ i, value }) => {
    const [west, south, east, north] = tree.bounds.subarray(4 * i, 4 * i + 4);
    return value / ((east - west) * (north - south));
  });
  const scale = mostly(sizes);
  cells.forEach(({ i, value, low, high }, k) => {
    const b = tree.bounds.subarray(4 * i, 4 * i + 4);
    const x = at.x(b[0]), y = at.y(b[3]), w = at.x(b[2]) - x, h = at.y(b[1]) - y;
    if (x + w < 0 || y + h < 0 || x > context.canvas.width || y > context.canvas.height) return;
    context.globalAlpha = 0.85 * Math.min(1, (sizes[k] / scale) ** 0.5);
    context.fillStyle = c.cell;
    context.fillRect(x, y, w, h);
    context.globalAlpha = Math.min(w, h) < 7 * ratio ? 0 : 0.55;  // edges of small cells would hide what is in them
    context.strokeStyle = c.ink;
    context.lineWidth = 0.5 * ratio;
    context.setLineDash(high - low > value ? [2 * ratio, 3 * ratio] : []);
    context.strokeRect(x, y, w, h);
    context.globalAlpha = 1;
    if (w > 46 * ratio && h > 30 * ratio) label(context, c, x + w / 2, y + h / 2, Math.round(value), Math.round((high - low) / 2), ratio);
  });
  context.setLineDash([]);
}

function label(context, c, x, y, value, margin, ratio) {
  context.textAlign = "center";
  context.strokeStyle = c.halo;
  context.fillStyle = c.ink;
  context.lineWidth = 3 * ratio;
  context.setLineDash([]);
  [[`${value}`, 13, -1], [`± ${margin}`, 10, 12]].forEach(([text, size, down]) => {
    context.font = `${size * ratio}px system-ui, sans-serif`;
    context.strokeText(text, x, y + down * ratio);
    context.fillText(text, x, y + down * ratio);
  });
}

/** Return a size that only few exceed. */
function mostly(sizes) {
  const sorted = Float64Array.from(sizes).sort();
  return sorted[Math.floor(0.97 * (sorted.length - 1))] || 1;
}

function paintDensity(context, at, frame) {
  const grain = 4, { width, height } = context.canvas, w = Math.ceil(width / grain), h = Math.ceil(height / grain);
  let heat = new Float32Array(w * h);
  for (let i = 0; i < frame.x.length; i++) {
    const x = (at.origin + frame.x[i] * at.step) >> 2, y = at.rows[frame.y[i]] >> 2;
    if (x >= 0 && y >= 0 && x < w && y < h) heat[y * w + x]++;
  }
  for (let k = 0; k < 2; k++) heat = blurred(blurred(heat, w, h, 1, w), h, w, w, 1);
  const top = mostly(heat.filter((v) => v > 0.01)), image = context.createImageData(w, h), [r, g, b] = colours().point;
  heat.forEach((v, k) => {
    const strong = Math.min(1, v / top) ** 0.6;
    image.data.set([r + (120 - r * 0.2) * strong * 0.6, g * (1 - 0.6 * strong), b * (1 - 0.4 * strong), 235 * strong], 4 * k);
  });
  const small = new OffscreenCanvas(w, h);
  small.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = true;
  context.drawImage(small, 0, 0, w * grain, h * grain);
}

/** Return a grid whose lines are running means of five. */
function blurred(from, length, lines, along, across) {
  const to = new Float32Array(from.length);
  for (let line = 0; line < lines; line++) {
    let sum = 0;
    const start = line * across;
    for (let i = -2; i < length; i++) {
      if (i + 2 < length) sum += from[start + (i + 2) * along];
      if (i - 3 >= 0) sum -= from[start + (i - 3) * along];
      if (i >= 0) to[start + i * along] = sum / 5;
    }
  }
  return to;
}
