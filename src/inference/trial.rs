//! Checks that a way returns the right results on this machine.
//!
//! A kernel that no test has ever run on this processor or GPU may return wrong numbers without an
//! error. Therefore every way evaluates the same positions as the way that is trusted most, which
//! computes in f32.

use super::torch_backend::TorchBackend;
use crate::backend::{Backend, BackendError, Batch, Differences, Evaluations};
use crate::chess::{Game, Ratings};
use crate::encode::Encoder;
use crate::torch::ComputeType;
use shakmaty::Position;
use std::time::{Duration, Instant};
use tch::{Device, Kind};

/// Number of games from which the positions are taken.
const GAMES: usize = 4;
/// Number of positions per game.
const POSITIONS: usize = 16;
/// Number of plies between two positions of a game.
const PLIES: usize = 5;
/// Largest mean difference in the probability of a move, and in the expected result.
const TOLERANCE: f32 = 0.01;
/// The same in int8 and bf16, whose rounding alone changes `tessera-xs` by 2 %.
const COARSE_TOLERANCE: f32 = 0.05;
/// Number of positions that are evaluated together.
const CHUNK: usize = 8;
/// Number of chunks on the CPU, whose kernels run in many tests, so that the engine is ready soon.
const CPU_CHUNKS: usize = 2;
/// Time after which the CPU evaluates no further chunk.
const ENOUGH: Duration = Duration::from_secs(1);

/// Positions, and the evaluations that are expected of them.
#[derive(Debug)]
pub(super) struct Trial {
    chunks: Vec<(Batch, Evaluations)>,
}

impl Trial {
    /// Evaluates positions with a backend that is trusted. On the CPU, there are fewer of them, above
    /// all if the network is slow.
    pub fn by(backend: &TorchBackend) -> Result<Trial, BackendError> {
        let start = Instant::now();
        let mut chunks = Vec::new();
        let most = match backend.device {
            Device::Cpu => CPU_CHUNKS,
            _ => usize::MAX,
        };
        for batch in positions(&backend.properties().encoder)?
            .into_iter()
            .take(most)
        {
            let mut expected = Evaluations::default();
            backend.evaluate(&batch, &mut expected)?;
            chunks.push((batch, expected));
            if backend.device == Device::Cpu && start.elapsed() > ENOUGH {
                break;
            }
        }
        Ok(Trial { chunks })
    }

    /// Returns the number of positions.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|(batch, _)| batch.len()).sum()
    }

    /// Returns the means over the positions of the largest difference in the probability of a move,
    /// and of the difference in the expected result.
    pub fn differences(&self, backend: &TorchBackend) -> Result<[f32; 2], BackendError> {
        let mut found = Differences::default();
        let mut out = Evaluations::default();
        for (batch, expected) in &self.chunks {
            backend.evaluate(batch, &mut out)?;
            found.join(Differences::between(&out, expected));
        }
        Ok(found.means())
    }

    /// Returns the reason to refuse a backend, or `None` if its results are right.
    pub fn objection(&self, backend: &TorchBackend) -> Option<String> {
        match self.differences(backend) {
            Ok(differences) => wrong_results(differences, backend.dtype),
            Err(error) => Some(error.to_string()),
        }
    }
}

/// Returns the reason to refuse a way with these differences in a dtype, or `None` if they are small
/// enough.
pub(super) fn wrong_results([policy, value]: [f32; 2], dtype: ComputeType) -> Option<String> {
    let tolerance = match dtype {
        dtype if dtype.int8 || dtype.kind == Kind::BFloat16 => COARSE_TOLERANCE,
        _ => TOLERANCE,
    };
    // A comparison with NaN is false.
    let is_right = policy <= tolerance && value <= tolerance;
    (!is_right).then(|| {
        format!(
            "wrong results: the policy is off by {:.1} % and the value by {:.1} %",
            100.0 * policy,
            100.0 * value
        )
    })
}

/// Returns the positions of a few games between players of various ratings, in chunks.
fn positions(encoder: &Encoder) -> Result<Vec<Batch>, BackendError> {
    let mut chunks = vec![Batch::default()];
    for number in 0..GAMES {
        let mut game = Game::default();
        let rating = |of| Some(1100 + 400 * (of % GAMES) as u16);
        game.set_ratings(Ratings {
            white: rating(number),
            black: rating(number + 1),
        });
        // Knuth's generator, whose high bits vary most.
        let mut random = number as u64 + 1;
        for ply in 1..=POSITIONS * PLIES {
            let moves = game.position().legal_moves();
            if moves.is_empty() {
                game = Game::default();
                continue;
            }
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            game.play(moves[(random >> 33) as usize % moves.len()]);
            let moves = game.position().legal_moves();
            if ply % PLIES != 0 || moves.is_empty() {
                continue;
            }
            if chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
                chunks.push(Batch::default());
            }
            if let Some(chunk) = chunks.last_mut() {
                chunk.push(&game, &moves, encoder)?;
                // A single step runs the same code as several steps.
                chunk.steps = Some(1);
            }
        }
    }
    Ok(chunks)
}
