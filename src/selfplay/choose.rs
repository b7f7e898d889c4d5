//! Chooses a move to play from a search's result.

use crate::agent::sampling::sample;
use crate::play::{Choice, MoveStatistics, Score};
use rand::Rng;
use shakmaty::Move;
use std::cmp::Reverse;

/// Returns the first move in the search's ranking and its value if the value is proven: 1 if the
/// move is proven to win, and −1 if all moves are proven to lose. Otherwise, returns `None`.
pub(super) fn proven(choice: &Choice) -> Option<(Move, f32)> {
    let line = choice.report.lines.first()?;
    let is_won = match line.score {
        Score::Mate(moves) => moves > 0,
        Score::Tablebase { won } => won,
        Score::Expected(_) => return None,
    };
    let value = match is_won {
        true => 1.0,
        false => -1.0,
    };
    Some((*line.moves.first()?, value))
}

/// Samples a move by the moves' visits, at a temperature above 0. Moves that are proven to lose are
/// excluded. If the value of the position is proven, returns the best move.
pub(super) fn draw(choice: &Choice, best: Move, temperature: f32, random: &mut impl Rng) -> Move {
    if temperature <= 0.0 || proven(choice).is_some() {
        return best;
    }
    let open = choice.statistics.iter().filter(|of| !of.is_lost());
    let mut open: Vec<&MoveStatistics> = open.collect();
    open.sort_by_key(|of| Reverse(of.visits));
    let visits: Vec<f32> = open.iter().map(|of| of.visits as f32).collect();
    let drawn = sample(&visits, temperature, 1.0, random);
    drawn.map_or(best, |place| open[place].mv)
}

/// Returns the move that the search ranks first. In contrast to the chosen move, the ranking is not
/// affected by the noise of Gumbel selection.
pub(super) fn surest(choice: &Choice, best: Move) -> Move {
    let line = choice.report.lines.first();
    line.and_then(|line| line.moves.first().copied())
        .unwrap_or(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::openings::generator;
    use crate::play::{Line, Report};
    use shakmaty::Position;

    /// Returns a search result for the initial position, with these visits and scores of its first
    /// legal moves. The first move is ranked best, and the second was sampled by Gumbel selection.
    fn choice(moves: &[(u64, Score)]) -> Choice {
        let legal = Game::default().position().legal_moves();
        let statistics = moves.iter().zip(&legal);
        let statistics = statistics.map(|(&(visits, score), &mv)| MoveStatistics {
            mv,
            visits,
            prior: 0.1,
            q: 0.0,
            wdl: [0.0, 1.0, 0.0],
            moves_left: None,
            score,
        });
        Choice {
            best: Some(legal[1]),
            statistics: statistics.collect(),
            report: Report {
                lines: vec![Line {
                    score: moves[0].1,
                    wdl: [0.0, 1.0, 0.0],
                    moves_left: None,
                    moves: vec![legal[0]],
                }],
                ..Report::default()
            },
            ..Choice::default()
        }
    }

    /// Returns how often each move is chosen in 1000 samples if the first move is the best.
    fn drawn(choice: &Choice, temperature: f32) -> Vec<u32> {
        let mut random = generator(1, 1);
        let mut counts = vec![0; choice.statistics.len()];
        for _ in 0..1000 {
            let mv = draw(choice, choice.statistics[0].mv, temperature, &mut random);
            let place = choice.statistics.iter().position(|of| of.mv == mv);
            counts[place.unwrap()] += 1;
        }
        counts
    }

    const EVEN: Score = Score::Expected(0.0);

    #[test]
    fn moves_are_drawn_by_visits_unless_they_are_proven_to_lose() {
        // The first-ranked move need not be the most visited.
        let moves = [(300, EVEN), (600, EVEN), (100, Score::Expected(-1.0))];
        let counts = drawn(&choice(&moves), 1.0);
        let mut pairs = counts.iter().zip([300u32, 600, 100]);
        assert!(pairs.all(|(&a, b)| a.abs_diff(b) < 60), "{counts:?}");
        assert_eq!(drawn(&choice(&moves), 0.0), [1000, 0, 0]);
        let lost = Score::Tablebase { won: false };
        let moves = [(200, EVEN), (700, Score::Mate(-3)), (100, lost)];
        assert_eq!(drawn(&choice(&moves), 1.0), [1000, 0, 0]);
        let unvisited = choice(&[(0, EVEN), (0, EVEN)]);
        assert_eq!(drawn(&unvisited, 1.0), [1000, 0]);
    }

    #[test]
    fn the_best_is_played_where_a_result_is_proven() {
        for (score, value) in [
            (Score::Mate(3), 1.0),
            (Score::Tablebase { won: true }, 1.0),
            (Score::Mate(-3), -1.0),
            (Score::Tablebase { won: false }, -1.0),
        ] {
            let choice = choice(&[(1, score), (60, EVEN)]);
            let first = choice.statistics[0].mv;
            assert_eq!(proven(&choice), Some((first, value)));
            assert_eq!(drawn(&choice, 1.0), [1000, 0]);
        }
        assert_eq!(proven(&choice(&[(1, EVEN)])), None);
        assert_eq!(proven(&Choice::default()), None);
    }

    #[test]
    fn the_surest_move_is_the_head_of_the_ranking() {
        let open = choice(&[(30, EVEN), (60, EVEN)]);
        let best = open.best.unwrap();
        assert_eq!(surest(&open, best), open.statistics[0].mv);
        assert_eq!(surest(&Choice::default(), best), best);
    }
}
