//! Replays a game's tree to convert its record to samples.

use shakmaty::{CastlingMode, Color, Move, Position};

use crate::chess::{FenError, Game};
use crate::encode::{Input, InputFormat, Transform, policy_index};

use super::label::{Labelled, TargetRules};
use super::legal::Legal;
use super::record::{Record, StrayNode};
use super::sample::{Policy, Sample};

/// Why a record cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The FEN of the first position is invalid.
    #[error(transparent)]
    Fen(#[from] FenError),
    /// The nodes do not form a tree.
    #[error(transparent)]
    Stray(#[from] StrayNode),
    /// The policy of a search result contains an ordinal that exceeds the number of legal moves.
    #[error("the search before ply {ply} names more than the {legal} legal moves")]
    Search {
        /// Number of plies before the position.
        ply: usize,
        /// The number of legal moves.
        legal: usize,
    },
    /// A node's ordinal exceeds the number of legal moves.
    #[error("move {node} of the game's tree refers to legal move {ordinal} of only {legal}")]
    Ordinal {
        /// The move's index in the record, from 0.
        node: usize,
        /// The node's ordinal, from 0.
        ordinal: u8,
        /// The number of legal moves.
        legal: usize,
    },
}

/// Weights of the samples in a variation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VariationWeight {
    /// Weight of a variation's first move.
    pub first: f32,
    /// Factor applied to the weight for each further ply of the variation.
    pub decay: f32,
}

/// Returns the game that a record's main line describes.
///
/// # Errors
/// [`ReplayError`] if the record does not describe a game.
pub fn main_line(record: &Record) -> Result<Game, ReplayError> {
    let mut game = begin(record)?;
    for (index, node) in record.nodes.iter().enumerate() {
        if node.depth == 0 {
            let position = game.position();
            let moves = position.legal_moves();
            let legal = Legal::of(&moves, position.turn());
            let (mv, _) = find(&moves, &legal, position.turn(), index, node.ordinal)?;
            game.play(mv);
        }
    }
    Ok(game)
}

/// Replays `record` and passes its samples to `emit`, in the record's order and in the input
/// `format`. `keep` is called once for each sample, and returns whether to emit it. Moves that lead
/// to no emitted sample are skipped, because most of the time is spent on generating legal moves.
///
/// # Errors
/// [`ReplayError`] if the record does not describe a game. The samples before the fault have
/// already been emitted. Faults in skipped moves are not detected.
pub fn replay(
    format: InputFormat,
    record: &Record,
    rules: &TargetRules,
    variations: VariationWeight,
    mut keep: impl FnMut() -> bool,
    mut emit: impl FnMut(Sample),
) -> Result<(), ReplayError> {
    let places = rules.label(record)?;
    let kept: Vec<bool> = places
        .iter()
        .map(|place| place.label.is_some() && keep())
        .collect();
    let needed = with_ancestors(record, kept.clone());
    walk(
        record,
        |node| needed[node],
        |node| places[node].ply,
        |step| {
            if kept[step.node] {
                emit(sample(
                    format,
                    record,
                    &step,
                    &places[step.node],
                    variations,
                )?);
            }
            Ok(())
        },
    )
}

/// Returns the sample of a labelled node, in the input `format`.
pub(super) fn sample(
    format: InputFormat,
    record: &Record,
    step: &Step<'_>,
    place: &Labelled,
    variations: VariationWeight,
) -> Result<Sample, ReplayError> {
    let policy = target_of(record, step, place)?;
    let game = Encoded::of(step.game, format);
    Ok(game.sample(&step.legal, policy, place, variations))
}

/// An encoded position of a game's main line.
pub(super) struct Along {
    /// The position, with its targets if it has any.
    pub sample: Sample,
    /// The policy index of the move that was played.
    pub played: u16,
}

/// Returns the positions before each main-line move, in order and in the input `format`, and the
/// complete game. If a position's move played is not a target, the position gets the targets of the
/// first variation that replaces the move.
///
/// # Errors
/// [`ReplayError`] if the record does not describe a game.
pub(super) fn along(
    format: InputFormat,
    record: &Record,
    rules: &TargetRules,
) -> Result<(Vec<Along>, Game), ReplayError> {
    // Variations are not visited.
    let variations = VariationWeight {
        first: 1.0,
        decay: 1.0,
    };
    let places = rules.label(record)?;
    let mut game = begin(record)?;
    let mut positions = Vec::new();
    let main_line = record.nodes.iter().enumerate();
    for (index, node) in main_line.filter(|(_, node)| node.depth == 0) {
        let turn = game.position().turn();
        let moves = game.position().legal_moves();
        let legal = Legal::of(&moves, turn);
        let (mv, played) = find(&moves, &legal, turn, index, node.ordinal)?;
        let labelled = labelled(record, &places, index);
        let (chosen, target) = match labelled == index {
            true => (mv, played),
            false => find(
                &moves,
                &legal,
                turn,
                labelled,
                record.nodes[labelled].ordinal,
            )?,
        };
        let step = Step {
            node: labelled,
            game: &game,
            moves: &moves,
            legal,
            played: chosen,
            target,
        };
        let place = Labelled {
            variation_ply: None,
            ..places[labelled].clone()
        };
        let policy = target_of(record, &step, &place)?;
        let encoded = Encoded::of(&game, format);
        positions.push(Along {
            played: encoded.transform.index(played),
            sample: encoded.sample(&legal, policy, &place, variations),
        });
        game.play(mv);
    }
    Ok((positions, game))
}

/// Returns the first labelled node among a main-line node and the nodes that replace it. If none is
/// labelled, returns the main-line node itself.
fn labelled(record: &Record, places: &[Labelled], node: usize) -> usize {
    let variations = record.nodes[node + 1..]
        .iter()
        .take_while(|it| it.depth > 0);
    let last = node + variations.count();
    let replaces = |&other: &usize| {
        let line = &record.nodes[other];
        other == node || line.depth == 1 && line.starts_line
    };
    let mut candidates = (node..=last).filter(replaces);
    candidates
        .find(|&other| places[other].label.is_some())
        .unwrap_or(node)
}

/// A node of a game's tree, with the game up to the position before its move.
pub(super) struct Step<'a> {
    /// The node's index in the record.
    pub node: usize,
    pub game: &'a Game,
    pub moves: &'a [Move],
    pub legal: Legal,
    /// The node's move.
    pub played: Move,
    /// The policy index of the node's move.
    pub target: u16,
}

/// Returns the nodes of `wanted` and their ancestors.
pub(super) fn with_ancestors(record: &Record, wanted: Vec<bool>) -> Vec<bool> {
    let mut needed = wanted;
    let mut latest: Vec<usize> = Vec::new();
    let mut before = Vec::with_capacity(needed.len());
    for (index, node) in record.nodes.iter().enumerate() {
        let depth = usize::from(node.depth);
        // A variation starts at the position before the move that it replaces.
        let line = match node.starts_line {
            true => depth.checked_sub(1),
            false => Some(depth),
        };
        before.push(line.and_then(|line| latest.get(line).copied()));
        latest.truncate(depth);
        latest.push(index);
    }
    for index in (0..needed.len()).rev() {
        if let (true, Some(before)) = (needed[index], before[index]) {
            needed[before] = true;
        }
    }
    needed
}

/// Replays the tree of `record`, including variations, and visits the `needed` nodes in order. The
/// ancestors of a needed node must also be needed. `ply` returns the number of plies before a
/// node's move.
pub(super) fn walk(
    record: &Record,
    needed: impl Fn(usize) -> bool,
    ply: impl Fn(usize) -> usize,
    mut visit: impl FnMut(Step<'_>) -> Result<(), ReplayError>,
) -> Result<(), ReplayError> {
    let mut game = begin(record)?;
    // The latest move at each depth. It is played only when its line continues, so that the
    // variations that replace it start from the position before it.
    let mut latest: Vec<Option<Move>> = Vec::new();
    for (index, node) in record.nodes.iter().enumerate() {
        let depth = usize::from(node.depth);
        if !needed(index) {
            latest.truncate(depth);
            latest.push(None);
            continue;
        }
        if node.starts_line || index == 0 {
            game.truncate(ply(index) + 1);
        } else {
            game.truncate(ply(index));
            game.play(latest[depth].expect("ancestors are needed too"));
        }
        let turn = game.position().turn();
        let moves = game.position().legal_moves();
        let legal = Legal::of(&moves, turn);
        let (mv, target) = find(&moves, &legal, turn, index, node.ordinal)?;
        latest.truncate(depth);
        latest.push(Some(mv));
        visit(Step {
            node: index,
            game: &game,
            moves: &moves,
            legal,
            played: mv,
            target,
        })?;
    }
    Ok(())
}

/// Returns the game at its first position, with the players' ratings.
fn begin(record: &Record) -> Result<Game, FenError> {
    let mut game = match &record.fen {
        None => Game::default(),
        Some(fen) => Game::from_fen(fen, CastlingMode::Standard)?,
    };
    game.set_ratings(record.ratings);
    Ok(game)
}

/// Returns a node's move and its policy index.
fn find(
    moves: &[Move],
    legal: &Legal,
    turn: Color,
    node: usize,
    ordinal: u8,
) -> Result<(Move, u16), ReplayError> {
    let named = legal.nth(ordinal.into()).and_then(|target| {
        let mv = moves.iter().find(|&&mv| policy_index(mv, turn) == target)?;
        Some((*mv, target))
    });
    named.ok_or(ReplayError::Ordinal {
        node,
        ordinal,
        legal: moves.len(),
    })
}

/// Returns the policy target of a node. If the position before the node was searched, this is the
/// policy of the search.
fn target_of(record: &Record, step: &Step<'_>, place: &Labelled) -> Result<Policy, ReplayError> {
    let search = record.search(place.ply);
    match search.filter(|_| place.variation_ply.is_none()) {
        Some(search) => search.distribution(&step.legal).ok_or(ReplayError::Search {
            ply: place.ply,
            legal: step.moves.len(),
        }),
        None => policy(step, place),
    }
}

/// Returns the policy target of a labelled node.
fn policy(step: &Step<'_>, place: &Labelled) -> Result<Policy, ReplayError> {
    if !place.label.is_some_and(|label| label.is_target) {
        return Ok(Policy::Unknown);
    }
    if place.alternatives.is_empty() {
        return Ok(Policy::Move(step.target));
    }
    let mut shares = Vec::with_capacity(place.alternatives.len());
    let turn = step.game.position().turn();
    for &(ordinal, share) in &place.alternatives {
        let (_, index) = find(step.moves, &step.legal, turn, step.node, ordinal)?;
        shares.push((index, share));
    }
    shares.sort_unstable_by_key(|&(index, _)| index);
    Ok(Policy::Distribution(shares))
}

/// An encoded position, and the transform applied to its board.
struct Encoded {
    input: Input,
    transform: Transform,
}

impl Encoded {
    fn of(game: &Game, format: InputFormat) -> Encoded {
        let (input, transform) = format.encode(game);
        Encoded { input, transform }
    }

    /// Returns the sample of this position. Its moves are transformed in the same way as the board.
    fn sample(
        self,
        legal: &Legal,
        policy: Policy,
        place: &Labelled,
        variations: VariationWeight,
    ) -> Sample {
        let label = place.label;
        let input = self.input;
        Sample {
            input: match place.variation_ply {
                // No player chose the moves of a variation.
                Some(_) => input.without_ratings(),
                None => input,
            },
            legal: self.legal(legal),
            policy: self.policy(policy),
            result: label.and_then(|label| label.result),
            q: label.and_then(|label| label.q),
            short_term: label.and_then(|label| label.short_term),
            moves_left: label.and_then(|label| label.moves_left),
            weight: match place.variation_ply {
                None => 1.0,
                Some(plies) => variations.first * variations.decay.powi(plies as i32),
            },
        }
    }

    fn legal(&self, legal: &Legal) -> Legal {
        match self.transform.is_identity() {
            true => *legal,
            false => legal.iter().map(|it| self.transform.index(it)).collect(),
        }
    }

    fn policy(&self, policy: Policy) -> Policy {
        match policy {
            Policy::Unknown => Policy::Unknown,
            Policy::Move(index) => Policy::Move(self.transform.index(index)),
            Policy::Distribution(mut moves) => {
                for (index, _) in &mut moves {
                    *index = self.transform.index(*index);
                }
                Policy::Distribution(moves)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Ratings;
    use crate::data::curve::Curve;
    use crate::data::label::EvalRefersTo;
    use crate::data::pgn::parse_game;
    use crate::data::record::Node;
    use crate::data::sample::Wdl;
    use proptest::prelude::*;

    const RULES: TargetRules = TargetRules {
        evals: Some(EvalRefersTo::MovePlayed),
        played: false,
        noise: false,
        curve: Curve::Lichess,
        alternatives: None,
    };
    const VARIATIONS: VariationWeight = VariationWeight {
        first: 0.5,
        decay: 0.5,
    };

    fn samples(record: &Record) -> Result<Vec<Sample>, ReplayError> {
        let mut samples = Vec::new();
        replay(
            InputFormat::Classical,
            record,
            &RULES,
            VARIATIONS,
            || true,
            |sample| samples.push(sample),
        )?;
        Ok(samples)
    }

    /// Returns the game after `moves`, given in UCI notation.
    fn after(moves: &str) -> Game {
        let mut game = Game::default();
        for mv in moves.split_whitespace() {
            let mv = game.parse_move(mv).unwrap();
            game.play(mv);
        }
        game
    }

    #[test]
    fn every_label_stands_at_its_position() {
        let text = "[Result \"0-1\"]\n\n1. e4 c5 {[%eval 0.3]} (1... e5 {[%eval 0.2]} 2. Nf3 \
                    (2. f4 {[%eval -0.5]} 2... exf4) 2... Nc6) 2. Nf3 {[%eval 0.4]} 0-1";
        let samples = samples(&parse_game(text.as_bytes()).unwrap()).unwrap();
        let q = |centipawns| Some(Curve::Lichess.q(centipawns));
        let expected = [
            ("e2e4", "c7c5", q(-30), Some(Wdl::Win), 1.0),
            ("e2e4", "e7e5", q(-20), None, 0.5),
            ("e2e4 e7e5", "g1f3", q(20), None, 0.25),
            ("e2e4 e7e5", "f2f4", q(-50), None, 0.25),
            ("e2e4 e7e5 f2f4", "e5f4", q(50), None, 0.125),
            ("e2e4 e7e5 g1f3", "b8c6", q(-20), None, 0.125),
            ("e2e4 c7c5", "g1f3", q(40), Some(Wdl::Loss), 1.0),
        ];
        assert_eq!(samples.len(), expected.len());
        for (sample, (moves, target, q, result, weight)) in samples.iter().zip(expected) {
            let game = after(moves);
            let turn = game.position().turn();
            let index = policy_index(game.parse_move(target).unwrap(), turn);
            assert_eq!(sample.input, Input::encode(&game), "{moves}");
            assert_eq!(
                sample.legal,
                Legal::of(&game.position().legal_moves(), turn)
            );
            assert_eq!(sample.policy, Policy::Move(index), "{moves} {target}");
            assert_eq!((sample.q, sample.result), (q, result), "{moves} {target}");
            assert_eq!(sample.weight, weight);
            assert_eq!(sample.short_term.is_some(), weight == 1.0);
            assert_eq!(sample.moves_left.is_some(), weight == 1.0);
        }
    }

    #[test]
    fn alternatives_share_a_sample() {
        let text = "1. e4 {[%eval 0.3]} (1. d4 {[%eval 0.3]} 1... d5) (1. a3 {[%eval -9]}) 1... h6 \
                    (1... e5 {[%eval 0.2]} 2. Nf3) (1... h6 {[%eval 0.9]}) 2. d4 {[%eval 1]} *";
        let record = parse_game(text.as_bytes()).unwrap();
        let rules = TargetRules {
            alternatives: Some(0.1),
            ..RULES
        };
        let mut found = Vec::new();
        replay(
            InputFormat::Classical,
            &record,
            &rules,
            VARIATIONS,
            || true,
            |sample| found.push(sample),
        )
        .unwrap();
        assert_eq!(found.len() as u64, rules.samples(&record));
        let q = |centipawns| Curve::Lichess.q(centipawns);
        let chance = |centipawns| (q(centipawns) / 0.2).exp();
        let sum = 2.0 * chance(30) + chance(-900);
        let expected = [
            (
                "",
                vec![
                    ("e2e4", chance(30) / sum),
                    ("d2d4", chance(30) / sum),
                    ("a2a3", chance(-900) / sum),
                ],
                q(30),
                1.0,
            ),
            ("d2d4", vec![("d7d5", 1.0)], q(-30), 0.25),
            (
                "e2e4",
                vec![
                    ("e7e5", chance(-20) / (chance(-20) + chance(-90))),
                    ("h7h6", chance(-90) / (chance(-20) + chance(-90))),
                ],
                q(-20),
                0.5,
            ),
            ("e2e4 e7e5", vec![("g1f3", 1.0)], q(20), 0.25),
            ("e2e4 h7h6", vec![("d2d4", 1.0)], q(100), 1.0),
        ];
        assert_eq!(found.len(), expected.len());
        for (sample, (moves, shares, q, weight)) in found.iter().zip(expected) {
            let game = after(moves);
            let turn = game.position().turn();
            assert_eq!(sample.input, Input::encode(&game), "{moves}");
            assert_eq!((sample.q, sample.weight), (Some(q), weight), "{moves}");
            let shares = shares
                .into_iter()
                .map(|(mv, share)| (policy_index(game.parse_move(mv).unwrap(), turn), share));
            match &sample.policy {
                Policy::Move(index) => assert!(shares.eq([(*index, 1.0)]), "{moves}"),
                Policy::Distribution(found) => {
                    assert!(found.is_sorted());
                    assert_eq!(found.len(), shares.len());
                    for (index, share) in shares {
                        let found = found.iter().find(|(found, _)| *found == index).unwrap();
                        assert!((found.1 - share).abs() < 1e-5, "{moves}: {found:?} {share}");
                    }
                }
                Policy::Unknown => panic!("{moves}"),
            }
        }
    }

    #[test]
    fn skipped_variations_change_nothing_else() {
        let text = "1. e4 {[%eval 0.3]} (1. d4 {[%eval 0.2]} 1... d5 (1... Nf6 2. c4 {[%eval 0.1]} \
                    2... e6) 2. c4 {[%eval 0.2]}) 1... c5 {[%eval 0.3]} (1... e5 {[%eval 0.2]} 2. Nf3 \
                    (2. f4 {[%eval -0.5]} 2... exf4) 2... Nc6) 2. Nf3 {[%eval 0.4]} 2... d6 *";
        let record = parse_game(text.as_bytes()).unwrap();
        let all = samples(&record).unwrap();
        assert!(all.len() >= 12, "{}", all.len());
        for only in 0..all.len() {
            let mut number = 0;
            let mut found = Vec::new();
            let keep = || {
                number += 1;
                number - 1 == only
            };
            replay(
                InputFormat::Classical,
                &record,
                &RULES,
                VARIATIONS,
                keep,
                |sample| found.push(sample),
            )
            .unwrap();
            assert_eq!(found, all[only..=only], "sample {only}");
        }
    }

    proptest! {
        /// The rows of main-line positions include the ratings, first the rating of the side to
        /// move. The rows of variations include none, because no player chose the moves.
        #[test]
        fn ratings_reach_the_rows(
            white in proptest::option::of(1u16..),
            black in proptest::option::of(1u16..),
        ) {
            let text = "1. e4 {[%eval 0.3]} (1. d4 {[%eval 0.3]} 1... d5 2. c4) 1... e5 \
                        {[%eval 0.2]} 2. Nf3 {[%eval 0.4]} *";
            let mut record = parse_game(text.as_bytes()).unwrap();
            record.ratings = Ratings { white, black };
            let samples = samples(&record).unwrap();
            prop_assert_eq!(samples.len(), 6);
            for sample in samples {
                let expected = match sample.weight {
                    1.0 => sample.input.turn().fold_wb([white, black], [black, white]),
                    _ => [None; 2],
                };
                prop_assert_eq!(sample.input.ratings(), expected);
            }
        }

        #[test]
        fn no_record_panics(
            nodes in proptest::collection::vec((0u8..40, 0u8..3, any::<bool>()), 0..60),
        ) {
            let node = |(ordinal, depth, starts_line)| Node {
                ordinal,
                depth,
                starts_line,
                eval: None,
            };
            let record = Record {
                nodes: nodes.into_iter().map(node).collect(),
                ..Record::default()
            };
            let _ = samples(&record);
            let rules = TargetRules {
                alternatives: Some(0.1),
                ..RULES
            };
            let _ = replay(InputFormat::Classical, &record, &rules, VARIATIONS, || true, drop);
        }
    }
}
