/** Where things are on the screen: Leaflet's map of degrees (Mercator) or of a plane, and points in steps of the frame. */

const STEPS = 65536;
const mercator = (lat) => Math.log(Math.tan(Math.PI / 4 + (Math.max(-85, Math.min(85, lat)) * Math.PI) / 360));

/** The frame of a stream as maps see it. */
export class Plane {
  constructor(head) {
    [this.west, this.south, this.east, this.north] = head.frame;
    this.degrees = head.degrees;
    this.crs = head.degrees ? L.CRS.EPSG3857 : L.CRS.Simple;
    this.heights = new Float64Array(STEPS);  // of each step from the south, in map units
    for (let k = 0; k < STEPS; k++) this.heights[k] = this.up(this.south + ((k + 0.5) / STEPS) * (this.north - this.south));
  }
  up(y) { return this.degrees ? mercator(y) : y; }
  get bounds() { return L.latLngBounds([this.south, this.west], [this.north, this.east]); }
  x(step) { return this.west + ((step + 0.5) / STEPS) * (this.east - this.west); }
  y(step) { return this.south + ((step + 0.5) / STEPS) * (this.north - this.south); }
  /** Return how coordinates become pixels of a canvas whose corner is at a container point. */
  pixels(map, corner, ratio) {
    const a = map.latLngToContainerPoint([this.south, this.west]), b = map.latLngToContainerPoint([this.north, this.east]);
    const kx = ((b.x - a.x) / (this.east - this.west)) * ratio;
    const ky = ((b.y - a.y) / (this.up(this.north) - this.up(this.south))) * ratio;
    const ox = (a.x - corner.x) * ratio, oy = (a.y - corner.y) * ratio, low = this.up(this.south);
    const stepX = (kx * (this.east - this.west)) / STEPS;
    const rows = new Int32Array(STEPS);
    for (let k = 0; k < STEPS; k++) rows[k] = oy + (this.heights[k] - low) * ky;
    return {
      x: (lng) => ox + (lng - this.west) * kx,
      y: (lat) => oy + (this.up(lat) - low) * ky,
      origin: ox + 0.5 * stepX,
      step: stepX,
      rows,
    };
  }
}
