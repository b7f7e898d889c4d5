//! The result of a search of the position, which is shown next to the policy.

use crate::backend::{Backend, BackendError};
use crate::chess::Game;
use crate::play::{Choice, Control, Limits};
use crate::search::{Outline, OutlineLimits, OutlineMove, Parameters, Search};
use serde::Serialize;
use shakmaty::san::SanPlus;
use std::sync::Arc;

/// Number of plies of the tree to show.
const PLIES: usize = 4;
/// Number of moves to show per position.
const MOVES: usize = 5;
/// Minimum number of visits of a move to be shown, as the root's visits divided by this number.
const LEAST_SHARE: u64 = 100;

/// A search of the position, and its disagreements with the policy.
#[derive(Clone, Debug, Serialize)]
pub struct SearchReport {
    /// Number of visits at the root.
    pub nodes: u64,
    /// The softmax temperature of the priors. It makes them flatter than the policy.
    pub policy_temperature: f32,
    /// The root move that the policy prefers, in standard algebraic notation.
    pub policy_first: Option<String>,
    /// Whether the search prefers another move.
    pub disagrees: bool,
    /// The root's moves in order of preference, best first.
    pub moves: Vec<SearchedMove>,
}

/// A move in the tree. Values are those of the side that plays it.
#[derive(Clone, Debug, Serialize)]
pub struct SearchedMove {
    /// The move in UCI notation.
    pub uci: String,
    /// The move in standard algebraic notation.
    pub san: String,
    /// Number of visits.
    pub visits: u32,
    /// Prior probability, in 0…1.
    pub prior: f32,
    /// Expected result, in −1…1.
    pub q: f32,
    /// The reply with the highest prior, or `None` if no reply was visited.
    pub policy_first: Option<String>,
    /// Whether the search prefers another reply.
    pub disagrees: bool,
    /// The replies in order of preference, best first.
    pub moves: Vec<SearchedMove>,
}

/// Searches the game's position on one thread with the engine's default parameters. Keeps the first
/// plies of the tree: in each position, the chosen move and the moves with at least a hundredth of
/// the root's visits.
///
/// # Errors
/// [`BackendError`] if an evaluation fails.
pub fn search(
    backend: Arc<dyn Backend>,
    game: &Game,
    nodes: u64,
) -> Result<SearchReport, BackendError> {
    let (search, choice) = searched(backend, game, nodes)?;
    let nodes = choice.report.nodes;
    let outline = search.outline(OutlineLimits {
        plies: PLIES,
        moves: MOVES,
        visits: u32::try_from(nodes.div_ceil(LEAST_SHARE)).unwrap_or(u32::MAX),
        chosen: choice.best,
    });
    let (policy_first, disagrees) = first(&outline, game);
    Ok(SearchReport {
        nodes,
        policy_temperature: Parameters::default().policy_temperature,
        policy_first,
        disagrees,
        moves: outline.moves.iter().map(|it| report(it, game)).collect(),
    })
}

/// Runs the engine's own search until it has a number of visits. Returns the search and the chosen
/// move.
fn searched(
    backend: Arc<dyn Backend>,
    game: &Game,
    nodes: u64,
) -> Result<(Search, Choice), BackendError> {
    let parameters = Parameters {
        threads: 1,
        ..Parameters::default()
    };
    let limits = Limits::of_nodes(nodes);
    let mut search = Search::new(backend, &parameters);
    let choice = search.run(game, &limits, &Control::default(), &mut |_| {})?;
    Ok((search, choice))
}

/// Returns the move that the policy prefers, and whether the search prefers another move.
fn first(outline: &Outline, game: &Game) -> (Option<String>, bool) {
    let policy = outline.policy_first;
    let search = outline.moves.first().map(|it| it.mv);
    let san = |mv| SanPlus::from_move(game.position().clone(), mv).to_string();
    (policy.map(san), search.is_some() && search != policy)
}

fn report(of: &OutlineMove, game: &Game) -> SearchedMove {
    let mut after = game.clone();
    after.play(of.mv);
    let (policy_first, disagrees) = first(&of.replies, &after);
    let replies = of.replies.moves.iter();
    SearchedMove {
        uci: game.format_move(of.mv),
        san: SanPlus::from_move(game.position().clone(), of.mv).to_string(),
        visits: of.visits,
        prior: of.prior,
        q: of.q,
        policy_first,
        disagrees,
        moves: replies.map(|it| report(it, &after)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Random;

    #[test]
    fn the_first_move_is_the_one_that_the_search_plays() {
        let game = Game::default();
        let mut surer = 0;
        for seed in 0..30 {
            let nodes = 200;
            let backend = Arc::new(Random::new(seed));
            let found = search(backend.clone(), &game, nodes).unwrap();
            let (_, choice) = searched(backend, &game, nodes).unwrap();
            let played = choice.best.map(|mv| game.format_move(mv));
            assert_eq!(Some(&found.moves[0].uci), played.as_ref());
            let san = Some(&found.moves[0].san);
            assert_eq!(found.disagrees, found.policy_first.as_ref() != san);
            let visits = found.moves.iter().map(|mv| mv.visits);
            surer += u32::from(visits.max() > Some(found.moves[0].visits));
        }
        assert!(surer > 0);
    }
}
