/** Files of what is shown, made in the page. Each says what may be claimed of it. */

/** Hand a text to the reader as a file. */
export function saveText(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** Return rows as CSV. A text that a spreadsheet would run as a formula gets an apostrophe. */
export function csv(heads, rows) {
  const cell = (value) => {
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : `${value}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [heads, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

const round = (x) => Number(x.toPrecision(8));

/** Return the points of a tick as rows of two coordinates. */
export function pointRows(frame, plane) {
  return Array.from(frame.x, (x, i) => [round(plane.x(x)), round(plane.y(frame.y[i]))]);
}

/** Return cells as rows: four sides, count, low, high. */
export function cellRows(tree, counts) {
  return counts.map(({ i, value, low, high }) => [...Array.from(tree.bounds.subarray(4 * i, 4 * i + 4), round), ...[value, low, high].map((v) => Number(v.toFixed(2)))]);
}

/** Return features as GeoJSON, with what may be claimed of them. */
export function geojson(features, privacy, tick) {
  return JSON.stringify({ type: "FeatureCollection", privacy, tick, features });
}

/** Return a rectangle's feature. */
export function rectangleFeature([west, south, east, north, count, low, high]) {
  const ring = [[west, south], [east, south], [east, north], [west, north], [west, south]];
  return { type: "Feature", properties: { count, low, high }, geometry: { type: "Polygon", coordinates: [ring] } };
}
