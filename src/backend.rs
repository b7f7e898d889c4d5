//! Position evaluation: the interface between players and networks.
//!
//! A player gathers positions into a [`Batch`], and a [`Backend`] fills an [`Evaluations`]. Only
//! the logits of legal moves are returned, in the order in which the player listed the moves.

mod cache;
mod cross_check;
mod device;
mod evaluate_games;
mod format;
mod futures;
mod imagination;
pub mod metadata;
mod options;
mod people;
mod random;
mod service;
pub mod shipped;
mod uniform;
mod way;

pub use cache::Cache;
pub use cross_check::{CrossCheck, Differences};
pub use device::{DeviceChoice, Devices, ParseDeviceError, Precision};
pub use evaluate_games::{Evaluated, evaluate_games, evaluate_with_futures};
pub use format::{Format, Refused, Speed};
pub use futures::{Decoding, PredictedFuture};
pub use imagination::{Imagination, Imagined, ImaginedBoard, Scene};
pub use metadata::{
    CONTRACT, ContractError, EncoderSpec, FORWARD, Metadata, Method, PlanesSpec, SEARCH_VALUES,
    STEP, TensorSpec,
};
pub use options::{
    BackendKind, BackendOptions, BuiltIn, CodeArguments, CodePolicy, NetworkOptions,
};
pub use people::{correct, evaluate_people};
pub use random::Random;
pub use service::Service;
pub use uniform::Uniform;
pub use way::Way;

use crate::chess::{Game, Ratings};
use crate::encode::{Encoder, Input, Unencodable, policy_index};
use crate::softmax::softmax;
use crate::tactics::correction::Correction;
use shakmaty::{Move, Position};
use std::sync::Arc;

/// Positions to evaluate, and the moves whose logits are requested.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    keys: Vec<u64>,
    inputs: Vec<Input>,
    sequences: Sequences,
    moves: Vec<u16>,
    ends: Vec<usize>,
    /// The number of steps in which to predict the positions' futures too, or `None` to predict
    /// none.
    pub steps: Option<usize>,
}

/// Games as tokens, for networks that read moves.
#[derive(Clone, Debug, Default)]
struct Sequences {
    tokens: Vec<u16>,
    ends: Vec<usize>,
    ratings: Vec<Ratings>,
}

impl Batch {
    /// Appends the game's current position. `moves` are its legal moves in any order. `encoder`
    /// is [`Properties::encoder`] of the backend that will evaluate the batch.
    ///
    /// # Errors
    /// [`BackendError::Unencodable`] if the backend cannot evaluate this game. The batch is then
    /// unchanged.
    pub fn push(
        &mut self,
        game: &Game,
        moves: &[Move],
        encoder: &Encoder,
    ) -> Result<(), BackendError> {
        let turn = game.position().turn();
        let indices = moves.iter().map(|&mv| policy_index(mv, turn));
        match encoder {
            Encoder::Nothing => self.moves.extend(indices),
            Encoder::Rows(format) => {
                let (input, transform) = format.encode(game);
                self.inputs.push(input);
                let indices = indices.map(|index| transform.index(index));
                self.moves.extend(indices);
            }
            Encoder::Moves(encoder) => {
                let Sequences {
                    tokens,
                    ends,
                    ratings,
                } = &mut self.sequences;
                encoder.encode(game, tokens)?;
                ends.push(tokens.len());
                ratings.push(game.ratings());
                let (vocabulary, position) = (&encoder.vocabulary, game.position());
                // Moves without a token become padding, which is never a target.
                let token = |&mv| vocabulary.token(position, mv);
                let tokens = moves.iter().map(token);
                let padding = vocabulary.padding();
                self.moves.extend(tokens.map(|it| it.unwrap_or(padding)));
            }
        }
        self.keys.push(encoder.key(game));
        self.ends.push(self.moves.len());
        Ok(())
    }

    /// Appends the position at `index` in another batch.
    pub fn push_from(&mut self, other: &Batch, index: usize) {
        self.keys.push(other.keys[index]);
        if let Some(&input) = other.inputs.get(index) {
            self.inputs.push(input);
        }
        if let Some((tokens, ratings)) = other.sequence(index) {
            self.sequences.tokens.extend_from_slice(tokens);
            self.sequences.ends.push(self.sequences.tokens.len());
            self.sequences.ratings.push(ratings);
        }
        self.moves.extend_from_slice(other.moves(index));
        self.ends.push(self.moves.len());
    }

    /// Returns the number of positions in the batch.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether the batch contains no positions.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Empties the batch but keeps its allocations.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.inputs.clear();
        self.sequences.tokens.clear();
        self.sequences.ends.clear();
        self.sequences.ratings.clear();
        self.moves.clear();
        self.ends.clear();
        self.steps = None;
    }

    /// Returns one key per position. Positions with equal keys may share an evaluation.
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// Returns the rows of an [`Encoder::Rows`] batch. With other encoders the slice is empty.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// Returns the tokens and the players' ratings at `index` in an [`Encoder::Moves`] batch.
    pub fn sequence(&self, index: usize) -> Option<(&[u16], Ratings)> {
        let Sequences {
            tokens,
            ends,
            ratings,
        } = &self.sequences;
        let &ratings = ratings.get(index)?;
        Some((&tokens[span(ends, index)], ratings))
    }

    /// Returns the policy indices of the moves at position `index`, or their tokens with
    /// [`Encoder::Moves`].
    pub fn moves(&self, index: usize) -> &[u16] {
        &self.moves[span(&self.ends, index)]
    }
}

fn span(ends: &[usize], index: usize) -> std::ops::Range<usize> {
    let start = index.checked_sub(1).map_or(0, |before| ends[before]);
    start..ends[index]
}

/// The evaluation of a position without its policy, for the side to move.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Value {
    /// Expected result, W − L, in −1…1. It ranks the moves.
    pub q: f32,
    /// Probability of a draw, in 0…1 − |q|.
    pub d: f32,
    /// Plies to the end of the game; 0 if the network has no such head.
    pub moves_left: f32,
    /// Expected squared error of `q`; 0 if the network has no such head.
    pub error: f32,
}

impl Value {
    /// Builds a value from a network's outputs: the win, draw and loss logits and, optionally, a
    /// separate `q`, the plies left and the error of `q`. Returns `None` unless all of them are
    /// finite.
    pub fn of_outputs(
        mut wdl: [f32; 3],
        [q, moves_left, error]: [Option<f32>; 3],
    ) -> Option<Value> {
        softmax(&mut wdl, 1.0);
        let scalars = [q, moves_left, error].into_iter().flatten();
        if !wdl.into_iter().chain(scalars).all(f32::is_finite) {
            return None;
        }
        let q = q.unwrap_or(wdl[0] - wdl[2]).clamp(-1.0, 1.0);
        Some(Value {
            q,
            d: wdl[1].min(1.0 - q.abs()),
            moves_left: moves_left.unwrap_or_default().max(0.0),
            error: error.unwrap_or_default().max(0.0),
        })
    }

    /// Returns the probabilities of win, draw and loss, which sum to 1.
    pub fn wdl(&self) -> [f32; 3] {
        let decided = 1.0 - self.d;
        // A certain result would otherwise be rounded below zero.
        let chance = |q: f32| ((decided + q) / 2.0).max(0.0);
        [chance(self.q), self.d, chance(-self.q)]
    }
}

/// The evaluations of a [`Batch`]: values and logits in the batch's order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluations {
    values: Vec<Value>,
    logits: Vec<f32>,
    ends: Vec<usize>,
    /// The futures that the batch asks for, one per position. Empty if the network does not predict
    /// them.
    pub futures: Vec<PredictedFuture>,
}

impl Evaluations {
    /// Appends the next position's value and the logits of its moves.
    pub fn push(&mut self, value: Value, logits: impl IntoIterator<Item = f32>) {
        self.values.push(value);
        self.logits.extend(logits);
        self.ends.push(self.logits.len());
    }

    /// Empties the evaluations but keeps their allocations.
    pub fn clear(&mut self) {
        self.values.clear();
        self.logits.clear();
        self.ends.clear();
        self.futures.clear();
    }

    /// Returns the number of positions evaluated.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether there are no evaluations.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the value of position `index`.
    pub fn value(&self, index: usize) -> Value {
        self.values[index]
    }

    /// Returns the logits of position `index`, one per move.
    pub fn logits(&self, index: usize) -> &[f32] {
        &self.logits[span(&self.ends, index)]
    }
}

/// Properties of a backend.
#[derive(Clone, Debug, PartialEq)]
pub struct Properties {
    /// Display name: the network's name, or a backend name such as `uniform`.
    pub name: String,
    /// The input that it reads.
    pub encoder: Encoder,
    /// Whether it predicts [`Value::q`] and [`Value::d`].
    pub has_value: bool,
    /// Whether it predicts [`Value::moves_left`].
    pub has_moves_left: bool,
    /// Whether it predicts [`Value::error`].
    pub has_error: bool,
    /// Whether it reads the players' ratings.
    pub reads_ratings: bool,
    /// The correction of its policy, if it has one: where it stands for people's moves if the network reads
    /// ratings, and otherwise in a search.
    pub correction: Option<Arc<Correction>>,
    /// The batch size at which it reaches nearly full speed.
    pub recommended_batch: usize,
    /// Number of threads that must call [`Backend::evaluate`] concurrently to keep it busy.
    pub recommended_threads: usize,
    /// The way and the format that its network runs in, or `None` if it has no network.
    pub format: Option<Format>,
}

impl Properties {
    /// Returns the correction of the policy where it stands for people's moves.
    pub fn people_correction(&self) -> Option<&Correction> {
        self.correction.as_deref().filter(|_| self.reads_ratings)
    }

    /// Returns the correction of the policy in a search.
    pub fn search_correction(&self) -> Option<&Correction> {
        self.correction.as_deref().filter(|_| !self.reads_ratings)
    }

    /// Checks that the backend predicts values.
    ///
    /// # Errors
    /// [`BackendError::NoValue`] if it does not.
    pub fn require_value(&self) -> Result<(), BackendError> {
        match self.has_value {
            true => Ok(()),
            false => Err(BackendError::NoValue(self.name.clone())),
        }
    }
}

/// Why an evaluation failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BackendError {
    /// The network requires information that this game lacks.
    #[error("the network cannot evaluate this position: {0}")]
    Unencodable(#[from] Unencodable),
    /// An agent that needs values was given a network without them.
    #[error(
        "the network `{0}` has no value head, so it cannot be searched: \
         set Agent to policy or human"
    )]
    NoValue(String),
    /// libtorch failed, for example because memory ran out or a device disappeared.
    #[error("the network could not be evaluated: {0}")]
    Torch(String),
    /// The network returned NaN or infinite values.
    #[error("the network `{0}` returned NaN or infinite values")]
    NotFinite(String),
    /// The backend panicked.
    #[error("the network's evaluation failed unexpectedly; please report this: {0}")]
    Panicked(String),
    /// An agent that searches in imagination was given a network that cannot imagine.
    #[error(
        "the network `{0}` has not learned the effects of moves, so it cannot look ahead without \
         the rules: name one of the family world (option Net), or set Agent to another"
    )]
    NoImagination(String),
    /// The thread that serves the batches has exited.
    #[error("the evaluation service has stopped")]
    Stopped,
}

/// Receives the evaluations.
pub type Reply = Box<dyn FnOnce(Result<Evaluations, BackendError>) + Send>;

/// Evaluates positions. Many threads may call it concurrently.
///
/// ```
/// use shakmaty::Position;
/// use tessera::chess::Game;
/// use tessera::backend::{Backend, Batch, Evaluations, Random};
///
/// let backend = Random::new(1);
/// let game = Game::default();
/// let moves = game.position().legal_moves();
/// let mut batch = Batch::default();
/// batch.push(&game, &moves, &backend.properties().encoder)?;
/// let mut evaluations = Evaluations::default();
/// backend.evaluate(&batch, &mut evaluations)?;
/// assert_eq!(evaluations.logits(0).len(), 20);
/// # Ok::<(), tessera::backend::BackendError>(())
/// ```
pub trait Backend: Send + Sync {
    /// Returns the backend's name, inputs, outputs and recommended settings.
    fn properties(&self) -> &Properties;

    /// Replaces the contents of `out` with the evaluations of `batch`, in order.
    ///
    /// # Errors
    /// [`BackendError`]. The contents of `out` are then unspecified.
    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError>;

    /// Evaluates a batch asynchronously. `reply` is called with the result, now or later and on any
    /// thread. If the backend has stopped, `reply` is dropped without being called.
    fn ask(&self, batch: Batch, reply: Reply) {
        let mut out = Evaluations::default();
        let answer = self.evaluate(&batch, &mut out);
        reply(answer.map(|()| out));
    }

    /// Returns the backend's interface for imagination, if it has one.
    fn imagination(&self) -> Option<Arc<dyn Imagination>> {
        None
    }

    /// Clears the backend's evaluation cache, if it has one.
    fn forget(&self) {}
}

impl<B: Backend + ?Sized> Backend for Arc<B> {
    fn properties(&self) -> &Properties {
        (**self).properties()
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        (**self).evaluate(batch, out)
    }

    fn ask(&self, batch: Batch, reply: Reply) {
        (**self).ask(batch, reply);
    }

    fn imagination(&self) -> Option<Arc<dyn Imagination>> {
        (**self).imagination()
    }

    fn forget(&self) {
        (**self).forget();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::encode::InputFormat;
    use crate::tactics::correction::tests::of_mates;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A backend whose policy of people is corrected: the logits of mates are shifted.
    pub(crate) struct Corrected<B> {
        backend: B,
        properties: Properties,
    }

    impl<B: Backend> Corrected<B> {
        pub(crate) fn new(backend: B, shift: f32) -> Corrected<B> {
            let properties = Properties {
                correction: Some(Arc::new(of_mates(shift))),
                reads_ratings: true,
                ..backend.properties().clone()
            };
            Corrected {
                backend,
                properties,
            }
        }
    }

    impl<B: Backend> Backend for Corrected<B> {
        fn properties(&self) -> &Properties {
            &self.properties
        }

        fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
            self.backend.evaluate(batch, out)
        }
    }

    /// Returns the positions of a game that plays the first legal move, then the second, then the
    /// third, and so on.
    pub(crate) fn positions(count: usize, encode: bool) -> Batch {
        let encoder = match encode {
            true => Encoder::Rows(InputFormat::Classical),
            false => Encoder::Nothing,
        };
        let mut batch = Batch::default();
        let mut game = Game::default();
        for ply in 0..count {
            let moves = game.position().legal_moves();
            batch.push(&game, &moves, &encoder).unwrap();
            match moves.get(ply % moves.len().max(1)) {
                Some(&mv) => game.play(mv),
                None => game = Game::default(),
            }
        }
        batch
    }

    /// Counts the requests to a backend.
    pub(crate) struct Counting<B> {
        inner: B,
        positions: AtomicUsize,
        largest: AtomicUsize,
    }

    impl<B> Counting<B> {
        pub(crate) fn new(inner: B) -> Counting<B> {
            Counting {
                inner,
                positions: AtomicUsize::new(0),
                largest: AtomicUsize::new(0),
            }
        }

        /// Returns the number of positions evaluated.
        pub(crate) fn positions(&self) -> usize {
            self.positions.load(Ordering::Relaxed)
        }

        /// Returns the number of positions in the largest batch.
        pub(crate) fn largest(&self) -> usize {
            self.largest.load(Ordering::Relaxed)
        }
    }

    impl<B: Backend> Backend for Counting<B> {
        fn properties(&self) -> &Properties {
            self.inner.properties()
        }

        fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
            self.positions.fetch_add(batch.len(), Ordering::Relaxed);
            self.largest.fetch_max(batch.len(), Ordering::Relaxed);
            self.inner.evaluate(batch, out)
        }
    }

    /// Checks that two backends evaluate a batch equally, up to the rounding errors of sums whose
    /// order depends on the size of a batch.
    #[cfg(feature = "torch")]
    pub(crate) fn assert_close(left: &impl Backend, right: &impl Backend, batch: &Batch) {
        let mut outs = [Evaluations::default(), Evaluations::default()];
        left.evaluate(batch, &mut outs[0]).unwrap();
        right.evaluate(batch, &mut outs[1]).unwrap();
        let [left, right] = outs;
        assert_eq!((left.len(), right.len()), (batch.len(), batch.len()));
        for index in 0..batch.len() {
            let values = [left.value(index), right.value(index)].map(|value| [value.q, value.d]);
            let [left, right] = [left.logits(index), right.logits(index)];
            assert_eq!(left.len(), right.len());
            let pairs = values[0]
                .iter()
                .zip(&values[1])
                .chain(left.iter().zip(right));
            for (left, right) in pairs {
                assert!((left - right).abs() < 1e-5, "{index}: {left}, {right}");
            }
        }
    }

    /// Checks that two backends evaluate a batch equally.
    pub(crate) fn assert_same(left: &impl Backend, right: &impl Backend, batch: &Batch) {
        let mut outs = [Evaluations::default(), Evaluations::default()];
        left.evaluate(batch, &mut outs[0]).unwrap();
        right.evaluate(batch, &mut outs[1]).unwrap();
        let [left, right] = outs;
        assert_eq!((left.len(), right.len()), (batch.len(), batch.len()));
        for index in 0..batch.len() {
            assert_eq!(left.value(index), right.value(index));
            assert_eq!(left.logits(index), right.logits(index));
        }
    }

    #[test]
    fn probabilities_are_never_negative() {
        for q in (0..1000).map(|step| step as f32 * 3.7e-9) {
            for q in [q, -q] {
                let value = Value::of_outputs([0.0, 40.0, 0.0], [Some(q), None, None]).unwrap();
                assert!(value.wdl().iter().all(|&chance| chance >= 0.0), "{value:?}");
            }
        }
    }

    #[test]
    fn a_batch_is_copied_position_by_position() {
        let batch = positions(3, true);
        let mut copy = Batch::default();
        copy.push_from(&batch, 2);
        copy.push_from(&batch, 0);
        assert_eq!(copy.keys(), [batch.keys()[2], batch.keys()[0]]);
        assert_eq!(copy.inputs(), [batch.inputs()[2], batch.inputs()[0]]);
        assert_eq!(copy.moves(0), batch.moves(2));
        copy.clear();
        assert!(copy.is_empty() && copy.inputs().is_empty());
    }
}
