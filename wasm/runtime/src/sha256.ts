/** SHA-256 without waiting: the web's own is asynchronous, and available only on pages of secure origins. */

/** The first 32 bits of the fractional parts of a root of the first primes. */
function roots(count: number, power: number): Int32Array {
  const found = new Int32Array(count);
  for (let n = 2, k = 0; k < count; n++) {
    let prime = true;
    for (let d = 2; d * d <= n; d++) if (n % d === 0) prime = false;
    if (prime) found[k++] = fraction(n, power);
  }
  return found;
}

/**
 * 2^32 times the fractional part of the square or cube root of n, exactly: a double has too few bits of a cube root.
 */
function fraction(n: number, power: number): number {
  const scaled = BigInt(n) << BigInt(32 * power);
  let root = BigInt(Math.floor(n ** (1 / power) * 2 ** 32));
  while (root ** BigInt(power) > scaled) root--;
  while ((root + 1n) ** BigInt(power) <= scaled) root++;
  return Number(BigInt.asIntN(32, root));
}

let tables: { begin: Int32Array; round: Int32Array } | undefined;

/** The 32 bytes of the digest. */
export function sha256(data: Uint8Array): Uint8Array {
  const { begin, round } = (tables ??= { begin: roots(8, 2), round: roots(64, 3) });
  const state = begin.slice();
  const words = new Int32Array(64);

  const blocks = (bytes: Uint8Array): void => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let at = 0; at < bytes.length; at += 64) {
      for (let k = 0; k < 16; k++) words[k] = view.getInt32(at + 4 * k);
      for (let k = 16; k < 64; k++) {
        const x = words[k - 15]!;
        const y = words[k - 2]!;
        const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
        const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
        words[k] = (words[k - 16]! + s0 + words[k - 7]! + s1) | 0;
      }
      let a = state[0]!;
      let b = state[1]!;
      let c = state[2]!;
      let d = state[3]!;
      let e = state[4]!;
      let f = state[5]!;
      let g = state[6]!;
      let h = state[7]!;
      for (let k = 0; k < 64; k++) {
        const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
        const t1 = (h + s1 + ((e & f) ^ (~e & g)) + round[k]! + words[k]!) | 0;
        const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
        const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
        h = g;
        g = f;
        f = e;
        e = (d + t1) | 0;
        d = c;
        c = b;
        b = a;
        a = (t1 + t2) | 0;
      }
      state[0]! += a;
      state[1]! += b;
      state[2]! += c;
      state[3]! += d;
      state[4]! += e;
      state[5]! += f;
      state[6]! += g;
      state[7]! += h;
    }
  };

  const whole = data.length - (data.length % 64);
  blocks(data.subarray(0, whole));
  const rest = data.subarray(whole);
  const last = new Uint8Array(rest.length < 56 ? 64 : 128);
  last.set(rest);
  last[rest.length] = 0x80;
  const end = new DataView(last.buffer);
  end.setUint32(last.length - 8, Math.floor(data.length / 2 ** 29));
  end.setUint32(last.length - 4, (data.length % 2 ** 29) * 8);
  blocks(last);

  const out = new DataView(new ArrayBuffer(32));
  state.forEach((word, k) => out.setInt32(4 * k, word));
  return new Uint8Array(out.buffer);
}
