// The clocks of two sides.

const shown = (ms) => {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
};

export class Clock {
  /** `mine` and `theirs` are elements; `flag` is called with the side whose time is up. */
  constructor({ mine, theirs, flag }) {
    this.places = { mine, theirs };
    this.flag = flag;
    this.set(0, 0);
    setInterval(() => this.tick(), 200);
  }

  /** Sets both to so many minutes; 0 is without a clock. */
  set(minutes, increment) {
    this.isOn = minutes > 0;
    this.left = { mine: 60_000 * minutes, theirs: 60_000 * minutes };
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
    }
  }
}
