//! What a network does without one of its attention heads.

use super::ExplainError;
use super::evaluator::{Evaluated, Evaluator};
use super::heads::{Ablation, Head};
use super::lens::divergence;
use crate::chess::Game;
use shakmaty::Position;

/// Multiply–accumulates that all ablations may take, some 15 s of one core: networks of
/// hundreds of heads and millions of weights are left whole.
const LARGEST: i64 = 500_000_000_000;

/// Fills in the ablation of each head in the game's position; `whole` is what the whole
/// network says there, and `mv` the number of the legal move that is explained.
pub(super) fn ablate(
    evaluator: &Evaluator,
    game: &Game,
    whole: &Evaluated,
    mv: usize,
    heads: &mut [Head],
) -> Result<(), ExplainError> {
    let network = evaluator.network;
    let macs = network.architecture.size().macs_total;
    if macs.saturating_mul(heads.len() as i64) > LARGEST {
        return Ok(());
    }
    let moves = game.position().legal_moves();
    for head in heads {
        let (layer, number) = (head.layer - 1, head.head - 1);
        let weights = network
            .architecture
            .without_head(&network.weights, layer, number);
        let Some(weights) = weights else { continue };
        let evaluated = evaluator.evaluate_with(&weights, std::slice::from_ref(game))?;
        let without = &evaluated[0];
        let pairs = whole.policy.iter().zip(&without.policy);
        let first =
            (0..moves.len()).max_by(|&a, &b| without.policy[a].total_cmp(&without.policy[b]));
        head.ablation = Some(Ablation {
            q: without.evaluation.q,
            prior: without.policy[mv],
            divergence: pairs.map(|(&p, &q)| divergence(p, q)).sum(),
            first: first
                .map(|first| game.format_move(moves[first]))
                .unwrap_or_default(),
        });
    }
    Ok(())
}
