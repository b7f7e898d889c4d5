//! Evaluates a network without one of its attention heads.

use super::ExplainError;
use super::evaluator::{Evaluated, Evaluator};
use super::heads::{Ablation, Head, SampleAblation};
use super::lens::divergence;
use crate::chess::Game;
use shakmaty::Position;

/// The ablation of a head is evaluated on every n-th position of the sample.
const EVERY: usize = 4;

/// Computes each head's ablation, in the game's position and over the sample. The legal move with
/// index `mv` is the explained move.
pub(super) fn ablate(
    evaluator: &Evaluator,
    game: &Game,
    mv: usize,
    sample: &[Game],
    heads: &mut [Head],
) -> Result<(), ExplainError> {
    let network = evaluator.network;
    // The heads of larger networks are ablated on fewer positions, or not at all.
    let affordable = evaluator.affordable() / heads.len().max(1);
    let games = std::iter::once(game).chain(sample.iter().step_by(EVERY));
    let games: Vec<Game> = games.take(affordable).cloned().collect();
    if games.is_empty() {
        return Ok(());
    }
    let whole = evaluator.evaluate(&games)?;
    let moves = game.position().legal_moves();
    for head in heads {
        let (layer, number) = (head.layer - 1, head.head - 1);
        let weights = network
            .architecture
            .without_head(&network.weights, layer, number);
        let Some(weights) = weights else { continue };
        let without = evaluator.evaluate_with(&weights, &games)?;
        let first = first(&without[0]).map(|first| game.format_move(moves[first]));
        head.ablation = Some(Ablation {
            q: without[0].evaluation.q,
            prior: without[0].policy[mv],
            divergence: policy_divergence(&whole[0], &without[0]),
            first: first.unwrap_or_default(),
            sample: of_sample(&whole[1..], &without[1..]),
        });
    }
    Ok(())
}

/// Returns the index of the most probable move.
pub(super) fn first(evaluated: &Evaluated) -> Option<usize> {
    let policy = &evaluated.policy;
    (0..policy.len()).max_by(|&a, &b| policy[a].total_cmp(&policy[b]))
}

/// Returns the divergence of the full network's policy from the policy without a head.
pub(super) fn policy_divergence(whole: &Evaluated, without: &Evaluated) -> f32 {
    divergence(whole.policy.iter().zip(&without.policy))
}

fn of_sample(whole: &[Evaluated], without: &[Evaluated]) -> Option<SampleAblation> {
    let count = whole.len() as f32;
    let pairs = || whole.iter().zip(without);
    let divergence: f32 = pairs()
        .map(|(one, other)| policy_divergence(one, other))
        .sum();
    let changed = pairs().filter(|(one, other)| first(one) != first(other));
    let changed = changed.count() as f32;
    (!whole.is_empty()).then(|| SampleAblation {
        positions: whole.len(),
        divergence: divergence / count,
        changed: changed / count,
    })
}
