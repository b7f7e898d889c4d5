// The clocks of two sides.

/** A time as clocks show it: with tenths in the last twenty seconds. */
const shown = (ms) => {
  const left = Math.max(0, ms);
  const seconds = left < 20_000 ? Math.floor(left / 100) / 10 : Math.ceil(left / 1000);
  const rest = seconds % 60;
  const written = left < 20_000 ? rest.toFixed(1).padStart(4, "0") : String(rest).padStart(2, "0");
  return `${Math.floor(seconds / 60)}:${written}`;
};

export class Clock {
  /** `mine` and `theirs` are elements; `flag` is called with the side whose time is up. */
  constructor({ mine, theirs, flag }) {
    this.places = { mine, theirs };
    this.flag = flag;
    this.set(0, 0);
    setInterval(() => this.tick(), 100);
  }

  /** Sets both to so many minutes, or to the milliseconds that are `left`; 0 minutes is
   * without a clock. */
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

  /** A side has moved. */
  moved(side) {
    this.settle();
    if (this.isOn) this.left[side] += this.increment;
  }

  /** A side's clock as a request tells it. */
  told(side) {
    this.settle();
    return { time_ms: Math.max(1, Math.round(this.left[side])), increment_ms: this.increment };
  }

  /** Takes the time that has passed from the side whose clock runs. */
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
