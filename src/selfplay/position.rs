//! Converts a searched position to training data.

use super::choose::proven;
use crate::backend::{Backend, BackendError, Evaluated, evaluate_games};
use crate::chess::Game;
use crate::data::Legal;
use crate::data::curve::centipawns;
use crate::data::pgn::Judged;
use crate::data::record::{Eval, SearchResult};
use crate::data::v6::{Expectation, Searched, divergence};
use crate::encode::{Input, policy_index};
use crate::play::{Choice, Control, Limits, MoveStatistics, Score};
use crate::search::{Contender, Parameters, Search, improved_policy};
use shakmaty::{Move, Position};
use std::sync::Arc;

/// Searches the game's current position in the same way as self-play, and returns the result in the
/// form that records store; it is marked unsearched if the search chooses no move. `search` must
/// already use these `parameters`, and is switched to this `backend`.
///
/// # Errors
/// [`BackendError`] if the backend fails.
pub fn search_position(
    game: &Game,
    backend: &Arc<dyn Backend>,
    search: &mut Search,
    limits: &Limits,
    parameters: &Parameters,
) -> Result<SearchResult, BackendError> {
    search.clear();
    search.set_backend(Arc::clone(backend));
    let network = Evaluation::new(&**backend, game)?;
    let choice = search.run(game, limits, &Control::default(), &mut |_| {})?;
    let Some(best) = choice.best else {
        return Ok(SearchResult::UNSEARCHED);
    };
    let found = searched(game, &network, &choice, best, best, parameters);
    let position = game.position();
    let legal = Legal::of(&position.legal_moves(), position.turn());
    Ok(result_of(&found, &legal))
}

/// The network's evaluation of a position, without a search.
pub(super) struct Evaluation {
    found: Evaluated,
    has_moves_left: bool,
}

impl Evaluation {
    /// Evaluates the game's current position.
    pub(super) fn new(backend: &dyn Backend, game: &Game) -> Result<Evaluation, BackendError> {
        Ok(Evaluation {
            found: evaluate_games(backend, [game])?.remove(0),
            has_moves_left: backend.properties().has_moves_left,
        })
    }

    fn expectation(&self) -> Expectation {
        let value = self.found.value;
        Expectation {
            q: value.q,
            draw: value.d,
            moves_left: match self.has_moves_left {
                true => value.moves_left,
                false => 0.0,
            },
        }
    }
}

/// Returns the training data of a position in which the search found the move `best`, and in which
/// the move `played` was played.
pub(super) fn searched(
    game: &Game,
    network: &Evaluation,
    choice: &Choice,
    best: Move,
    played: Move,
    parameters: &Parameters,
) -> Searched {
    let turn = game.position().turn();
    let moves = &network.found.moves;
    let statistics = |mv: Move| choice.statistics.iter().find(|found| found.mv == mv);
    let visits = |mv: Move| statistics(mv).map_or(0, |found| found.visits);
    let all: u64 = moves.iter().map(|&mv| visits(mv)).sum();
    let proof = proven(choice).filter(|&(mv, _)| mv == best);
    let is_won = proof.is_some_and(|(_, q)| q > 0.0);
    let is_gumbel = parameters.gumbel_moves > 0;
    let shares: Vec<f32> = if is_won || all == 0 && !is_gumbel {
        // Either the value is proven, and only the best move should be learned, or the search chose
        // its move without any visits.
        let share = |&mv: &Move| f32::from(u8::from(mv == best));
        moves.iter().map(share).collect()
    } else if is_gumbel {
        improve(network, &statistics, parameters)
    } else {
        let share = |&mv: &Move| (visits(mv) as f64 / all as f64) as f32;
        moves.iter().map(share).collect()
    };
    let prior = network.found.policy(1.0);
    let own = network.expectation();
    let expected = |mv| {
        let found = statistics(mv).map_or(own, expectation);
        match proof.filter(|_| mv == best) {
            Some((_, q)) => Expectation {
                q,
                draw: 0.0,
                ..found
            },
            None => found,
        }
    };
    let root = if proof.is_some() {
        expected(best)
    } else if is_gumbel {
        // Gumbel selection also visits moves only to compare them. A mean weighted by visits would
        // include moves that would not be played.
        let visited = |mv| statistics(mv).filter(|found| found.visits > 0);
        let values = moves.iter().zip(&shares);
        mean(values.map(|(&mv, &share)| (visited(mv).map_or(own, expectation), share)))
    } else {
        by_visits(own, choice)
    };
    Searched {
        input: Input::encode(game),
        policy: moves
            .iter()
            .zip(&shares)
            .map(|(&mv, &share)| (policy_index(mv, turn), share))
            .collect(),
        root,
        best: expected(best),
        played: expected(played),
        network: Some(own),
        visits: u32::try_from(choice.report.nodes).unwrap_or(u32::MAX),
        best_index: policy_index(best, turn),
        played_index: policy_index(played, turn),
        is_proven: proof.is_some(),
        policy_divergence: divergence(shares.iter().copied().zip(prior)),
    }
}

/// Returns the search result of a position with these legal moves in the form that records store.
pub(super) fn result_of(searched: &Searched, legal: &Legal) -> SearchResult {
    let share = |&(index, share): &(u16, f32)| (legal.ordinal(index) as u8, share);
    let mut policy: Vec<(u8, f32)> = searched.policy.iter().map(share).collect();
    policy.sort_unstable_by_key(|&(ordinal, _)| ordinal);
    SearchResult::new(policy, searched.root.q, searched.best.q)
}

/// Returns the improved policy of Gumbel selection.
fn improve<'a>(
    network: &Evaluation,
    statistics: &impl Fn(Move) -> Option<&'a MoveStatistics>,
    parameters: &Parameters,
) -> Vec<f32> {
    let priors = network.found.policy(parameters.policy_temperature);
    let contenders = network.found.moves.iter().zip(priors).enumerate();
    let contenders: Vec<Contender> = contenders
        .map(|(number, (&mv, prior))| {
            let visited = statistics(mv).filter(|found| found.visits > 0);
            Contender {
                number: number as u8,
                prior,
                q: visited.map(|found| found.q),
                started: visited.map_or(0, |found| found.visits as u32),
                lost: false,
            }
        })
        .collect();
    improved_policy(&contenders, network.found.value.q, parameters.gumbel_scale)
}

/// Returns the root value as defined by PUCT: the mean of the position's own evaluation, with
/// weight 1, and the values of its moves, weighted by visits.
fn by_visits(own: Expectation, choice: &Choice) -> Expectation {
    let statistics = choice.statistics.iter();
    let visits = statistics.map(|found| (expectation(found), found.visits as f32));
    mean(std::iter::once((own, 1.0)).chain(visits))
}

/// Returns the weighted mean of expectations. At least one weight must be above 0.
fn mean(weighted: impl Iterator<Item = (Expectation, f32)>) -> Expectation {
    let (mut sums, mut weights) = ([0.0; 3], 0.0);
    for (of, weight) in weighted {
        let weight = f64::from(weight);
        for (sum, value) in sums.iter_mut().zip([of.q, of.draw, of.moves_left]) {
            *sum += weight * f64::from(value);
        }
        weights += weight;
    }
    let [q, draw, moves_left] = sums.map(|sum| (sum / weights) as f32);
    Expectation {
        q,
        draw,
        moves_left,
    }
}

fn expectation(found: &MoveStatistics) -> Expectation {
    Expectation {
        q: found.q,
        draw: found.wdl[1],
        moves_left: found.moves_left.unwrap_or(0.0),
    }
}

/// Returns the best move with its score, for display and for PGN.
pub(super) fn judged(game: &Game, choice: &Choice, best: Move, q: f32) -> Judged {
    let turn = game.position().turn();
    let line = choice.report.lines.first();
    let line = line.filter(|line| line.moves[0] == best);
    let white = |value: i16| turn.fold_wb(value, value.saturating_neg());
    let eval = match line.map(|line| line.score) {
        Some(Score::Mate(moves)) if moves != 0 => Eval::Mate(white(moves as i16)),
        _ => Eval::Centipawns(white(centipawns(q))),
    };
    Judged {
        moves: line.map_or_else(|| vec![best], |line| line.moves.clone()),
        eval,
        depth: choice.report.depth,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Random;
    use shakmaty::CastlingMode;

    /// Searches a game's position with `visits` visits. Returns the search's result and the
    /// training data.
    fn search(game: &Game, visits: u64, gumbel_moves: u32) -> (Choice, Searched) {
        let backend = Arc::new(Random::new(5));
        let parameters = Parameters {
            threads: 1,
            hash: 1,
            gumbel_moves,
            ..Parameters::default()
        };
        let mut search = Search::new(backend.clone(), &parameters);
        let limits = Limits {
            nodes: Some(visits),
            ..Limits::default()
        };
        let network = Evaluation::new(&*backend, game).unwrap();
        let control = Control::default();
        let choice = search.run(game, &limits, &control, &mut |_| {}).unwrap();
        let best = choice.best.unwrap();
        let found = searched(game, &network, &choice, best, best, &parameters);
        (choice, found)
    }

    /// Returns the values of the root and of the best move, and the mean of the moves' values
    /// weighted by visits.
    fn values(gumbel_moves: u32) -> (f32, f32, f32) {
        let (choice, found) = search(&Game::default(), 64, gumbel_moves);
        let visits: u64 = choice.statistics.iter().map(|of| of.visits).sum();
        let values = choice.statistics.iter().map(|of| of.visits as f32 * of.q);
        (
            found.root.q,
            found.best.q,
            values.sum::<f32>() / visits as f32,
        )
    }

    fn game(fen: &str) -> Game {
        Game::from_fen(fen, CastlingMode::Standard).unwrap()
    }

    #[test]
    fn a_proven_win_is_the_whole_target() {
        // A mate in one, and a mate in two that only visits or the mate prover can find.
        for (fen, mate) in [
            ("6k1/5ppp/8/8/8/8/8/R6K w - - 0 1", Some("a1a8")),
            ("7k/8/8/8/8/8/1R6/R6K w - - 0 1", None),
        ] {
            for gumbel_moves in [0, 8] {
                let game = game(fen);
                let (choice, found) = search(&game, 200, gumbel_moves);
                let best = choice.best.unwrap();
                if let Some(mate) = mate {
                    assert_eq!(game.format_move(best), mate);
                }
                assert!(found.is_proven, "{choice:?}");
                let index = policy_index(best, game.position().turn());
                for &(other, share) in &found.policy {
                    let expected = f32::from(u8::from(other == index));
                    assert!((share - expected).abs() < 1e-6, "{fen} {share}");
                }
                assert_eq!(
                    [found.root.q, found.best.q].map(f32::to_bits),
                    [1f32; 2].map(f32::to_bits)
                );
                assert_eq!(found.root, found.best);
                let legal = Legal::of(&game.position().legal_moves(), game.position().turn());
                let result = result_of(&found, &legal);
                assert!(result.root_q() > 0.999 && result.best_q() > 0.999);
            }
        }
    }

    #[test]
    fn a_position_that_is_lost_is_worth_nothing_else() {
        for gumbel_moves in [0, 2] {
            let game = game("7K/5k2/8/8/8/8/P7/6q1 w - - 0 1");
            let (choice, found) = search(&game, 100, gumbel_moves);
            assert!(found.is_proven, "{choice:?}");
            assert!(found.root.q <= -1.0 && found.best.q <= -1.0);
        }
    }

    #[test]
    fn the_roots_value_is_that_of_what_the_search_would_play() {
        // With Gumbel selection, moves that are only tried have little weight.
        let (root, best, visited) = values(16);
        assert!(
            (root - best).abs() < 0.5 * (visited - best).abs(),
            "{root} {best} {visited}"
        );
        // With PUCT, each visit has the same weight.
        let (root, _, visited) = values(0);
        assert!((root - visited).abs() < 0.05, "{root} {visited}");
    }
}
