/** A Leaflet layer that is one canvas, somewhat larger than the map: dragging moves it, and its end paints it anew. */

const PAD = 0.3;

/** Make a layer that calls `painter(canvas, corner, ratio)` when the map has moved or when told to `redraw`. */
export function canvasLayer(painter) {
  const Layer = L.Layer.extend({
    onAdd(map) {
      this.canvas = L.DomUtil.create("canvas", "page-canvas", map.getPane("overlayPane"));
      map.on("moveend zoomend viewreset resize", this.redraw, this);
      this.redraw();
    },
    onRemove(map) {
      map.off("moveend zoomend viewreset resize", this.redraw, this);
      this.canvas.remove();
    },
    redraw() {
      const map = this._map;
      if (!map) return;
      const size = map.getSize(), ratio = Math.min(2, devicePixelRatio || 1);
      const corner = L.point(-Math.round(PAD * size.x), -Math.round(PAD * size.y));
      const wide = size.x - 2 * corner.x, high = size.y - 2 * corner.y, canvas = this.canvas;
      if (!wide || !high) return;  // hidden: painted when it is seen again
      L.DomUtil.setPosition(canvas, map.containerPointToLayerPoint(corner));
      if (canvas.width !== Math.round(wide * ratio) || canvas.height !== Math.round(high * ratio)) {
        canvas.width = Math.round(wide * ratio);
        canvas.height = Math.round(high * ratio);
        canvas.style.width = `${wide}px`;
        canvas.style.height = `${high}px`;
      }
      painter(canvas, corner, ratio);
    },
  });
  return new Layer();
}
