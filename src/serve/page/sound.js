// The sounds of moves, synthesised when needed.

import { setting } from "./settings.js";

let context;

/** Plays a short knock: filtered noise that fades out. */
function knock(frequency, loudness, after = 0) {
  const length = 0.09;
  const at = context.currentTime + after;
  const buffer = context.createBuffer(1, context.sampleRate * length, context.sampleRate);
  const samples = buffer.getChannelData(0);
  for (let index = 0; index < samples.length; index += 1) {
    samples[index] = (2 * Math.random() - 1) * Math.exp((-9 * index) / samples.length);
  }
  const filter = new BiquadFilterNode(context, { type: "bandpass", frequency, Q: 1.4 });
  const gain = new GainNode(context, { gain: loudness });
  const source = new AudioBufferSourceNode(context, { buffer });
  source.connect(filter).connect(gain).connect(context.destination);
  source.start(at);
}

/** Plays a soft tone. */
function tone(frequency, loudness, after, length) {
  const at = context.currentTime + after;
  const source = new OscillatorNode(context, { type: "triangle", frequency });
  const gain = new GainNode(context, { gain: 0 });
  gain.gain.setTargetAtTime(loudness, at, 0.01);
  gain.gain.setTargetAtTime(0, at + length / 3, length / 4);
  source.connect(gain).connect(context.destination);
  source.start(at);
  source.stop(at + 2 * length);
}

const sounds = {
  move: () => knock(900, 1),
  capture: () => {
    knock(650, 1.3);
    knock(1300, 0.7, 0.05);
  },
  check: () => {
    knock(900, 1);
    tone(880, 0.06, 0.03, 0.15);
  },
  start: () => tone(523, 0.07, 0, 0.2),
  end: () => [392, 523, 659].forEach((frequency, index) => tone(frequency, 0.06, 0.12 * index, 0.35)),
};

/** Plays a sound, unless the settings disable sounds or the browser does not allow the page to play any yet. */
export function play(name) {
  if (!setting("sound") || !navigator.userActivation?.hasBeenActive) return;
  context ??= new AudioContext();
  context.resume();
  sounds[name]();
}

/** Plays the sound of the last move of a game. */
export function playMove(game) {
  const last = game.moves.at(-1);
  if (!last) return;
  if (game.position.isCheck()) play("check");
  else play(last.isCapture ? "capture" : "move");
}
