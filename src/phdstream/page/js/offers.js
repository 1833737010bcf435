/** The buttons that download what is shown. */
import { cellRows, csv, geojson, pointRows, rectangleFeature, saveText } from "./downloads.js";
import { hasAddress } from "./link.js";
import { cellCounts } from "./painting.js";
import { byId, element, say } from "./words.js";

/** Offer what a page shows as files. */
export function addDownloads(page) {
  const { head, plane } = page, names = head.names.slice(0, 2);
  const tick = () => page.source.ticks[page.state.at].tick, file = (what, ending) => `phdstream-${what}-tick-${tick()}.${ending}`;
  const sides = [...names.map((n) => `${n}_min`), ...names.map((n) => `${n}_max`), "count", "low", "high", "privacy"];
  const cells = () => cellRows(page.frame.tree, cellCounts(page.frame.tree));
  const mark = (rows) => rows.map((row) => [...row, head.privacy]);
  const point = (coordinates) => ({ type: "Feature", properties: {}, geometry: { type: "Point", coordinates } });
  const offers = {
    download_points: () => saveText(file("points", "csv"), "text/csv", csv([...names, "privacy"], mark(pointRows(page.frame, plane)))),
    download_points_geojson: () => saveText(file("points", "geojson"), "application/geo+json", geojson(pointRows(page.frame, plane).map(point), head.privacy, tick())),
    download_cells: () => saveText(file("cells", "csv"), "text/csv", csv(sides, mark(cells()))),
    download_cells_geojson: () => saveText(file("cells", "geojson"), "application/geo+json", geojson(cells().map(rectangleFeature), head.privacy, tick())),
    download_counts: () => {
      const known = page.counts.map((c, i) => [page.source.ticks[i], c]).filter(([, c]) => c);
      const rows = known.map(([t, c]) => [t.tick, t.label, page.areaName, ...[c.value, c.low, c.high].map((v) => Number(v.toFixed(2)))]);
      saveText(file("counts", "csv"), "text/csv", csv(["tick", "when", "area", "count", "low", "high", "privacy"], mark(rows)));
    },
  };
  if (page.source.live) offers.download_geoparquet = () => page.source.save(tick(), "geoparquet", file("points", "parquet"));
  if (hasAddress()) offers.link = async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      byId("live").textContent = say("link_done");
    } catch {
      byId("live").textContent = say("link_here");
    }
  };
  byId("downloads").replaceChildren(...Object.entries(offers).map(([key, act]) => element("button", { type: "button", id: key.replaceAll("_", "-"), onclick: act }, say(key))));
}
