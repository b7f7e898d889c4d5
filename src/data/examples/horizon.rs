//! Positions with their targets and the future that an engine predicted.
//!
//! The future consists of target moves. It contains the move played if that move is a target. If
//! the move played is not a target but an engine preferred a variation, the future contains the
//! variation up to its end. Without either, the future ends.
//!
//! If the target is a variation, the example contains a second future, which starts with the move
//! played and shows the consequences of this move.

use super::{Columns, Examples, PositionColumns, PositionExamples};
use crate::chess::after;
use crate::data::label::{Labelled, TargetRules};
use crate::data::record::Record;
use crate::data::replay::{ReplayError, sample, walk, with_ancestors};
use crate::data::sample::Sample;
use crate::encode::Squares;
use shakmaty::Position;
use std::ops::Range;

/// Extracts positions with a future of up to this many plies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HorizonExamples {
    /// The encoding and the weights of positions.
    pub positions: PositionExamples,
    /// Maximum number of plies in a future.
    pub plies: usize,
}

/// A ply of the future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuturePly {
    /// The policy index of the move.
    pub played: u16,
    /// The board after the move, from the perspective of the side then to move.
    pub board: Squares,
}

/// The plies that follow a position, starting with the move to play; it may be empty.
pub type Future = Vec<FuturePly>;

/// A move played instead of the target, with its consequences.
#[derive(Clone, Debug, PartialEq)]
pub struct Instead {
    /// The move played, followed by the engine's prediction.
    pub future: Future,
    /// The value W − L of the move in −1…1, from the perspective of the side that plays it.
    pub q: f32,
}

/// A position with its targets and its future.
#[derive(Clone, Debug, PartialEq)]
pub struct WithFuture {
    /// The position and its targets.
    pub sample: Sample,
    /// The future.
    pub future: Future,
    /// The move played instead of the target, if the target was not played and the value of the
    /// move played is known.
    pub instead: Option<Instead>,
}

/// The links between the nodes of a game's tree. All vectors are indexed by node.
struct Continuations {
    /// The next node of each node's line.
    next: Vec<Option<usize>>,
    /// The first variation that replaces each node.
    instead: Vec<Option<usize>>,
    /// For the first node of each variation: the node that it replaces.
    replaces: Vec<Option<usize>>,
}

impl Continuations {
    fn of(record: &Record) -> Continuations {
        let count = record.nodes.len();
        let (mut next, mut instead) = (vec![None; count], vec![None; count]);
        let mut replaces = vec![None; count];
        // The latest node at each depth.
        let mut latest: Vec<usize> = Vec::new();
        for (index, node) in record.nodes.iter().enumerate() {
            let depth = usize::from(node.depth);
            if node.starts_line {
                let replaced = depth.checked_sub(1).and_then(|line| latest.get(line));
                if let Some(&replaced) = replaced {
                    instead[replaced].get_or_insert(index);
                    replaces[index] = Some(replaced);
                }
            } else if let Some(&before) = latest.get(depth) {
                next[before] = Some(index);
            }
            latest.truncate(depth);
            latest.push(index);
        }
        Continuations {
            next,
            instead,
            replaces,
        }
    }

    /// Returns the nodes of the future that follows the position before a node.
    fn from(&self, places: &[Labelled], node: usize) -> impl Iterator<Item = usize> {
        let first = self.chosen(places, node);
        std::iter::successors(first, move |&node| self.chosen(places, self.next[node]?))
    }

    /// Returns the target of the position before a node: this node or the first variation that
    /// replaces it, or `None` if neither is a target.
    fn chosen(&self, places: &[Labelled], node: usize) -> Option<usize> {
        let is_chosen = |&node: &usize| is_target(places, node);
        let instead = || self.instead[node].filter(is_chosen);
        Some(node).filter(is_chosen).or_else(instead)
    }

    /// Given the first node of a variation, returns the node of the move played instead, and the
    /// value of that move from the perspective of the side that played it. Returns `None` if the
    /// value is unknown or the move played is itself a target.
    fn played_instead(&self, places: &[Labelled], node: usize) -> Option<(usize, f32)> {
        let played = self.replaces[node].filter(|&played| !is_target(places, played))?;
        let after = self.chosen(places, self.next[played]?)?;
        Some((played, -places[after].label?.q?))
    }

    /// Returns a node, followed by the nodes of the future after its move.
    fn along(&self, places: &[Labelled], node: usize) -> impl Iterator<Item = usize> {
        let rest = self.next[node].map(|next| self.from(places, next));
        std::iter::once(node).chain(rest.into_iter().flatten())
    }
}

/// Returns whether a node's move is the policy target.
fn is_target(places: &[Labelled], node: usize) -> bool {
    places[node].label.is_some_and(|label| label.is_target)
}

impl Examples for HorizonExamples {
    type Example = WithFuture;
    type Columns = HorizonColumns;

    fn expected(&self, games: f64, positions: f64) -> f64 {
        self.positions.expected(games, positions)
    }

    fn of_record(
        &self,
        record: &Record,
        rules: &TargetRules,
        mut keep: impl FnMut() -> bool,
        mut emit: impl FnMut(WithFuture),
    ) -> Result<(), ReplayError> {
        let PositionExamples { format, variations } = self.positions;
        let places = rules.label(record)?;
        let continuations = Continuations::of(record);
        let future_of = |node| continuations.from(&places, node).take(self.plies);
        let instead_of = |node| {
            let (played, q) = continuations.played_instead(&places, node)?;
            Some((continuations.along(&places, played).take(self.plies), q))
        };
        let kept: Vec<bool> = places
            .iter()
            .map(|place| place.label.is_some() && keep())
            .collect();
        let mut wanted = kept.clone();
        for node in (0..kept.len()).filter(|&node| kept[node]) {
            let instead = instead_of(node).into_iter().flat_map(|(nodes, _)| nodes);
            future_of(node)
                .chain(instead)
                .for_each(|node| wanted[node] = true);
        }
        let needed = with_ancestors(record, wanted.clone());
        let mut samples: Vec<(usize, Sample)> = Vec::new();
        let mut plies: Vec<Option<FuturePly>> = vec![None; kept.len()];
        let walked = walk(
            record,
            |node| needed[node],
            |node| places[node].ply,
            |step| {
                if kept[step.node] {
                    let sample = sample(format, record, &step, &places[step.node], variations)?;
                    samples.push((step.node, sample));
                }
                if wanted[step.node] {
                    let position = after(step.game.position(), step.played);
                    plies[step.node] = Some(FuturePly {
                        played: step.target,
                        board: Squares::of_board(position.board(), position.turn()),
                    });
                }
                Ok(())
            },
        );
        for (node, sample) in samples {
            // After a fault, no further moves were replayed.
            let future = future_of(node).map_while(|node| plies[node]).collect();
            let instead = instead_of(node).map(|(nodes, q)| Instead {
                future: nodes.map_while(|node| plies[node]).collect(),
                q,
            });
            let instead = instead.filter(|it| !it.future.is_empty());
            emit(WithFuture {
                sample,
                future,
                instead,
            });
        }
        walked
    }
}

/// A batch of B positions with their futures.
#[derive(Clone, Debug, Default)]
pub struct HorizonColumns {
    /// The positions with their targets.
    pub positions: PositionColumns,
    /// The positions' futures.
    pub futures: Vec<Future>,
    /// For each position, the move played instead of the target, if any.
    pub instead: Vec<Option<Instead>>,
}

impl Columns for HorizonColumns {
    type Example = WithFuture;

    fn push(&mut self, example: &WithFuture) {
        self.positions.push(&example.sample);
        self.futures.push(example.future.clone());
        self.instead.push(example.instead.clone());
    }

    fn len(&self) -> usize {
        self.futures.len()
    }

    fn part(&self, places: Range<usize>) -> HorizonColumns {
        HorizonColumns {
            positions: self.positions.part(places.clone()),
            futures: self.futures[places.clone()].to_vec(),
            instead: self.instead[places].to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::data::Curve;
    use crate::data::label::EvalRefersTo;
    use crate::data::pgn::parse_game;
    use crate::data::replay::VariationWeight;
    use crate::encode::{InputFormat, policy_index};

    const RULES: TargetRules = TargetRules {
        evals: Some(EvalRefersTo::MovePlayed),
        played: false,
        noise: true,
        curve: Curve::Lichess,
        alternatives: None,
    };

    fn horizon(plies: usize) -> HorizonExamples {
        HorizonExamples {
            positions: PositionExamples {
                format: InputFormat::Classical,
                variations: VariationWeight {
                    first: 1.0,
                    decay: 1.0,
                },
            },
            plies,
        }
    }

    fn examples(plies: usize, pgn: &str, keep: impl FnMut() -> bool) -> Vec<WithFuture> {
        let record = parse_game(pgn.as_bytes()).unwrap();
        let mut found = Vec::new();
        let emit = |example| found.push(example);
        horizon(plies)
            .of_record(&record, &RULES, keep, emit)
            .unwrap();
        found
    }

    /// Returns the future that consists of `moves`, after playing `before`; both are in UCI
    /// notation.
    fn future(before: &str, moves: &str) -> Future {
        let mut game = Game::default();
        for mv in before.split_whitespace() {
            game.play(game.parse_move(mv).unwrap());
        }
        let plies = moves.split_whitespace().map(|mv| {
            let mv = game.parse_move(mv).unwrap();
            let played = policy_index(mv, game.position().turn());
            game.play(mv);
            let position = game.position();
            let board = Squares::of_board(position.board(), position.turn());
            FuturePly { played, board }
        });
        plies.collect()
    }

    /// Engines chose the moves that have a score. 1. e4 and 2. Qh5 were not chosen by an engine.
    const GAME: &str = "1. e4 (1. d4 {[%eval 0.3]} 1... d5 2. c4) 1... e5 {[%eval 0.2]} \
        2. Qh5 (2. Nf3 {[%eval 0.3]} 2... Nc6 3. Bb5 a6 4. Ba4) 2... Nc6 {[%eval 0.1]} \
        3. Bc4 {[%eval 0.1]} 3... Nf6 *";

    #[test]
    fn futures_follow_what_an_engine_chose() {
        let found = examples(4, GAME, || true);
        let line = "g1f3 b8c6 f1b5 a7a6 b5a4";
        let expected = [
            ("", "d2d4 d7d5 c2c4"),
            ("d2d4", "d7d5 c2c4"),
            ("d2d4 d7d5", "c2c4"),
            // 1. e4, the move that the engine chose, and then the variation that replaces 2. Qh5.
            ("e2e4", "e7e5 g1f3 b8c6 f1b5"),
            ("e2e4 e7e5", &line[..19]),
            ("e2e4 e7e5 g1f3", &line[5..24]),
            ("e2e4 e7e5 g1f3 b8c6", &line[10..]),
            ("e2e4 e7e5 g1f3 b8c6 f1b5", &line[15..]),
            ("e2e4 e7e5 g1f3 b8c6 f1b5 a7a6", &line[20..]),
            // The best move after 3. Bc4 is unknown.
            ("e2e4 e7e5 d1h5", "b8c6 f1c4"),
            ("e2e4 e7e5 d1h5 b8c6", "f1c4"),
        ];
        assert_eq!(found.len(), expected.len());
        for (found, (before, moves)) in found.iter().zip(expected) {
            assert_eq!(found.future, future(before, moves), "{before}");
        }
        assert!(
            examples(2, GAME, || true)
                .iter()
                .all(|it| it.future.len() <= 2)
        );
        assert!(
            examples(0, GAME, || true)
                .iter()
                .all(|it| it.future.is_empty())
        );
    }

    #[test]
    fn played_alternatives_show_their_future() {
        let found = examples(4, GAME, || true);
        let instead: Vec<_> = found.iter().map(|it| it.instead.clone()).collect();
        // After 1. e4, the engine chose e5 with a score of 0.2 pawns for White; after 2. Qh5, it
        // chose Nc6 with 0.1 pawns for White.
        let q = |place: usize| found[place].sample.q.unwrap();
        let expected = |before: &str, moves: &str, q: f32| {
            let future = future(before, moves);
            Some(Instead { future, q })
        };
        let e4 = expected("", "e2e4 e7e5 g1f3 b8c6", -q(3));
        let qh5 = expected("e2e4 e7e5", "d1h5 b8c6 f1c4", -q(9));
        for (place, instead) in instead.iter().enumerate() {
            match place {
                0 => assert_eq!(instead, &e4),
                4 => assert_eq!(instead, &qh5),
                _ => assert_eq!(instead, &None, "{place}"),
            }
        }
        // If the move played is itself a target, the variation's example has no second future.
        let game = "1. e4 {[%eval 0.2]} (1. d4 {[%eval 0.3]}) 1... e5 {[%eval 0.2]} *";
        assert!(
            examples(4, game, || true)
                .iter()
                .all(|it| it.instead.is_none())
        );
        // The value of the last move is unknown.
        let game = "1. e4 (1. d4 {[%eval 0.3]}) *";
        assert!(
            examples(4, game, || true)
                .iter()
                .all(|it| it.instead.is_none())
        );
    }

    #[test]
    fn samples_are_those_without_a_future() {
        let record = parse_game(GAME.as_bytes()).unwrap();
        let mut samples = Vec::new();
        let emit = |sample| samples.push(sample);
        let positions = horizon(4).positions;
        positions.of_record(&record, &RULES, || true, emit).unwrap();
        let found = examples(4, GAME, || true);
        assert!(found.iter().map(|it| &it.sample).eq(&samples));
        // If only one position is kept, it still has its future.
        for only in 0..found.len() {
            let mut number = 0;
            let alone = examples(4, GAME, || {
                number += 1;
                number - 1 == only
            });
            assert_eq!(alone, found[only..=only]);
        }
        let mut columns = HorizonColumns::default();
        found.iter().for_each(|example| columns.push(example));
        let part = columns.part(3..5);
        assert_eq!(part.len(), 2);
        assert_eq!(part.futures[0], found[3].future);
        assert_eq!(part.positions.inputs[1], found[4].sample.input);
    }
}
