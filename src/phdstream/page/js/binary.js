/** Bytes: base64 and gzip undone, and numbers read from them as `phdstream.page.blocks.pack` wrote them. */

/** Return the bytes that a text in base64 stands for. */
export function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  return Uint8Array.from({ length: raw.length }, (_, i) => raw.charCodeAt(i));
}

/** Return what gzip compressed. */
export async function gunzip(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Reads numbers one after the other; all are little-endian but the planes of packed ones. */
export class ByteReader {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
  }
  u32() { this.at += 4; return this.view.getUint32(this.at - 4, true); }
  f32() { this.at += 4; return this.view.getFloat32(this.at - 4, true); }
  take(length) { this.at += length; return this.bytes.subarray(this.at - length, this.at); }
  /** Read n 16-bit numbers. */
  u16s(n) {
    return new Uint16Array(this.take(2 * n).slice().buffer);
  }
  /** Read n 16-bit numbers whose high bytes stand first. */
  planes16(n) {
    const high = this.take(n), low = this.take(n), out = new Uint16Array(n);
    for (let i = 0; i < n; i++) out[i] = (high[i] << 8) | low[i];
    return out;
  }
  /** Read n whole numbers of four planes. */
  planes32(n) {
    const p = [0, 1, 2, 3].map(() => this.take(n)), out = new Uint32Array(n);
    for (let i = 0; i < n; i++) out[i] = ((p[0][i] << 24) | (p[1][i] << 16) | (p[2][i] << 8) | p[3][i]) >>> 0;
    return out;
  }
  /** Read n numbers kept as the first `size` bytes of 32-bit floating point. */
  packed(n, size) {
    const planes = Array.from({ length: size }, () => this.take(n));
    const bits = new Uint32Array(n);
    planes.forEach((plane, k) => { for (let i = 0; i < n; i++) bits[i] |= plane[i] << (24 - 8 * k); });
    return Float64Array.from(new Float32Array(bits.buffer));
  }
}
