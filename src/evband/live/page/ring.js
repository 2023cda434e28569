// The last rows of a car in arrays that never grow.
export class Ring {
  constructor(size, fields) {
    this.size = size;
    this.columns = Object.fromEntries(["at", ...fields].map((name) => [name, new Float64Array(size)]));
    this.fields = fields;
    this.clear();
  }

  clear() {
    this.head = this.length = 0;
  }

  /** Place of row i, 0 being the oldest. */
  place(i) {
    return (this.head - this.length + i + 2 * this.size) % this.size;
  }

  value(name, i) {
    return this.columns[name][this.place(i)];
  }

  get newest() {
    return this.length ? this.value("at", this.length - 1) : NaN;
  }

  /** Add a row; one that is not newer is left out, and a clock that went back begins anew. Whether it was added. */
  push(at, row) {
    if (!Number.isFinite(at)) return false;
    if (this.length && at <= this.newest) {
      if (at > this.newest - 60) return false;
      this.clear();
    }
    this.columns.at[this.head] = at;
    for (const name of this.fields) this.columns[name][this.head] = row[name] ?? NaN;
    this.head = (this.head + 1) % this.size;
    this.length = Math.min(this.length + 1, this.size);
    return true;
  }

  /** The first row at or after a time. */
  from(at) {
    let low = 0, high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.value("at", middle) < at) low = middle + 1; else high = middle;
    }
    return low;
  }
}
