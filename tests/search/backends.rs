//! Backends with known evaluations.

use shakmaty::Color;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tessera::backend::{Backend, BackendError, Batch, Evaluations, Properties, Value};
use tessera::encode::{Encoder, InputFormat, MoveEncoder, Vocabulary};
use tessera::play::Clock;

/// A scripted evaluation of a position: its value, and the logits of its moves, which are given by
/// policy index.
type Script = dyn Fn(u64, &[u16]) -> (Value, Vec<f32>) + Send + Sync;

type Watch = dyn Fn(usize) + Send + Sync;

type TurnScript = dyn Fn(Color, &[u16]) -> (Value, Vec<f32>) + Send + Sync;

/// Evaluates positions with a function of their key, after a delay.
pub struct Scripted {
    properties: Properties,
    script: Box<Script>,
    by_turn: Option<Box<TurnScript>>,
    delay: Duration,
    delay_each: Duration,
    stall: (usize, Duration),
    clock: Clock,
    watch: Option<Box<Watch>>,
    failing: Range<usize>,
    calls: AtomicUsize,
    largest: AtomicUsize,
}

impl Scripted {
    pub fn new(
        script: impl Fn(u64, &[u16]) -> (Value, Vec<f32>) + Send + Sync + 'static,
    ) -> Scripted {
        Scripted {
            properties: Properties {
                name: "scripted".to_owned(),
                encoder: Encoder::Nothing,
                has_value: true,
                has_moves_left: false,
                has_error: false,
                reads_ratings: false,
                correction: None,
                recommended_batch: 16,
                recommended_threads: 1,
                format: None,
            },
            script: Box::new(script),
            by_turn: None,
            delay: Duration::ZERO,
            delay_each: Duration::ZERO,
            stall: (0, Duration::ZERO),
            clock: Clock::default(),
            watch: None,
            failing: 0..0,
            calls: AtomicUsize::new(0),
            largest: AtomicUsize::new(0),
        }
    }

    /// Evaluates positions by the side to move, which is read from the encoded position.
    pub fn with_turn(
        script: impl Fn(Color, &[u16]) -> (Value, Vec<f32>) + Send + Sync + 'static,
    ) -> Scripted {
        let mut scripted = Scripted::new(|_, moves| (Value::default(), vec![0.0; moves.len()]));
        scripted.properties.encoder = Encoder::Rows(InputFormat::Classical);
        scripted.by_turn = Some(Box::new(script));
        scripted
    }

    /// Makes the backend read games move by move, up to this many tokens.
    pub fn reading_moves(mut self, context: usize) -> Scripted {
        self.properties.encoder = Encoder::Moves(MoveEncoder {
            vocabulary: Arc::new(Vocabulary::Uci),
            context,
        });
        self
    }

    /// Delays every call by this much time.
    pub fn delayed(mut self, delay: Duration) -> Scripted {
        self.delay = delay;
        self
    }

    /// Delays every call by this much time per position.
    pub fn delayed_each(mut self, delay: Duration) -> Scripted {
        self.delay_each = delay;
        self
    }

    /// Delays the call with this number, counting from 0.
    pub fn stalled(mut self, call: usize, delay: Duration) -> Scripted {
        self.stall = (call, delay);
        self
    }

    /// Lets the delays pass on this clock.
    pub fn on_clock(mut self, clock: &Clock) -> Scripted {
        self.clock = clock.clone();
        self
    }

    /// Runs `watch` with the number of every call, counting from 0, before the call is answered.
    pub fn watched(mut self, watch: impl Fn(usize) + Send + Sync + 'static) -> Scripted {
        self.watch = Some(Box::new(watch));
        self
    }

    /// Makes the calls with these numbers, counting from 0, fail.
    pub fn failing(mut self, calls: Range<usize>) -> Scripted {
        self.failing = calls;
        self
    }

    /// Returns the number of positions in the largest call.
    pub fn largest(&self) -> usize {
        self.largest.load(Ordering::Relaxed)
    }

    pub fn shared(self) -> Arc<dyn Backend> {
        Arc::new(self)
    }
}

impl Backend for Scripted {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        if self.failing.contains(&call) {
            return Err(BackendError::Stopped);
        }
        self.largest.fetch_max(batch.len(), Ordering::Relaxed);
        self.clock
            .sleep(self.delay + self.delay_each * batch.len() as u32);
        if call == self.stall.0 {
            self.clock.sleep(self.stall.1);
        }
        if let Some(watch) = &self.watch {
            watch(call);
        }
        out.clear();
        for (index, &key) in batch.keys().iter().enumerate() {
            let (value, logits) = match &self.by_turn {
                Some(script) => script(batch.inputs()[index].turn(), batch.moves(index)),
                None => (self.script)(key, batch.moves(index)),
            };
            out.push(value, logits);
        }
        Ok(())
    }
}

/// Returns a backend in which all positions are even and all moves equally likely.
pub fn uniform() -> Scripted {
    Scripted::new(|_, moves| (Value::default(), vec![0.0; moves.len()]))
}

/// Returns a backend whose values and logits are a hash of the position.
pub fn hashed() -> Scripted {
    Scripted::new(|key, moves| {
        let q = unit(mix(key)) * 1.6 - 0.8;
        let value = Value {
            q,
            d: (1.0 - q.abs()) * 0.5,
            ..Value::default()
        };
        let logits = moves
            .iter()
            .map(|&mv| unit(mix(key ^ u64::from(mv) << 32)) * 3.0)
            .collect();
        (value, logits)
    })
}

/// Applies the finaliser of SplitMix64.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns a number in 0…1 computed from the upper bits.
fn unit(x: u64) -> f32 {
    (x >> 40) as f32 / (1 << 24) as f32
}
