// The two sides' clocks.

/** Formats a time for a clock; the last twenty seconds show tenths. */
const shown = (ms) => {
  const left = Math.max(0, ms);
  const seconds = left < 20_000 ? Math.floor(left / 100) / 10 : Math.ceil(left / 1000);
  const rest = seconds % 60;
  const written = left < 20_000 ? rest.toFixed(1).padStart(4, "0") : String(rest).padStart(2, "0");
  return `${Math.floor(seconds / 60)}:${written}`;
};

export class Clock {
  /** `mine` and `theirs` are elements; `flag` is called with the side whose time has run out. */
  constructor({ mine, theirs, flag }) {
    this.places = { mine, theirs };
    this.flag = flag;
    this.set(0, 0);
    setInterval(() => this.tick(), 100);
  }

  /** Sets both clocks to this many minutes, or to the milliseconds in `left`; 0 minutes means no clock. */
  set(minutes, increment, left) {
    this.isOn = minutes > 0;
    this.left = left ? { ...left } : { mine: 60_000 * minutes, theirs: 60_000 * minutes };
    this.increment = 1000 * increment;
    this.running = undefined;
    this.draw();
  }

  run(side) {
    this.settle();
    this.running = this.isOn ? side : undefined;
    this.draw();
  }

  stop() {
    this.settle();
    this.running = undefined;
    this.draw();
  }

  /** Records that a side has moved. */
  moved(side) {
    this.settle();
    if (this.isOn) this.left[side] += this.increment;
  }

  /** Returns a side's clock in the format of a request. */
  told(side) {
    this.settle();
    return { time_ms: Math.max(1, Math.round(this.left[side])), increment_ms: this.increment };
  }

  /** Subtracts the elapsed time from the side whose clock is running. */
  settle() {
    const now = performance.now();
    if (this.running) this.left[this.running] -= now - this.since;
    this.since = now;
  }

  tick() {
    if (!this.running) return;
    this.settle();
    this.draw();
    if (this.left[this.running] <= 0) this.flag(this.running);
  }

  draw() {
    for (const [side, place] of Object.entries(this.places)) {
      place.lastElementChild.textContent = this.isOn ? shown(this.left[side]) : "";
      place.classList.toggle("runs", this.running === side);
      place.classList.toggle("low", this.isOn && this.left[side] < 20_000);
    }
  }
}
