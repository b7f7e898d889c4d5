//! Labels: the training targets of a game's positions, derived from the moves, the scores and the
//! result.
//!
//! PGN does not define which position a score after a move refers to, so the user specifies this in
//! the [`TargetRules`]. Each label becomes a separate sample. A main-line position that has
//! variations therefore has several samples, which are merged only if their moves are treated as
//! alternatives.
//!
//! A record may also contain search results for the positions of its main line. Each searched
//! position becomes a sample with the policy and the values of the search, and scores of moves are
//! ignored. Unsearched positions between searched ones give no sample.
//!
//! # Alternatives
//! An engine may score several moves of a position. One of these moves may have been played; the
//! others are variations. If the scored moves are treated as alternatives, they become one sample
//! whose policy is a softmax over their expected scores, (1 + q)/2, at a temperature. The sample's
//! value is the value of the first alternative.
//!
//! # Injected random moves
//! Some sources inject random moves into engine games to reach unusual positions. A main-line move
//! without a score counts as random if it follows a scored move. The positions of a game with a
//! random move have no target for the result or the moves left: at positions before the random
//! move, the result depends on that move, and after it, further random moves may follow.
//!
//! # Short-term value
//! The short-term value of a position is an exponential average of its value and the subsequent
//! values on the main line, as in Lc0's rescorer: st(t) = q(t)/6 − 5/6 · st(t + 1), where each
//! value is from the perspective of the side to move. The value after the last move is the result.
//! If the next value or the result is missing, the average starts with st = q.

use serde::{Deserialize, Serialize};
use shakmaty::Color;

use super::curve::Curve;
use super::record::{Eval, Record, StrayNode};
use super::sample::Wdl;
use crate::softmax::softmax;

/// Weight of the position's own value in its short-term value.
const SHORT_TERM_STEP: f32 = 1.0 / 6.0;

/// The position to which a score after a move in a PGN refers.
///
/// In shards and on the command line, the variants are called `chooser` and `analysis`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub enum EvalRefersTo {
    /// The position before the move: the engine that chose the move wrote the score. The move and
    /// its score are targets of that position. In variations every move is a target, with the last
    /// score before it in the variation.
    #[serde(rename = "chooser")]
    #[value(name = "chooser")]
    MovePlayed,
    /// The position after the move, as in Lichess's analyses of games already played. Variations
    /// are ignored.
    #[serde(rename = "analysis")]
    #[value(name = "analysis")]
    PositionReached,
}

/// Determines which targets the games of a source give.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetRules {
    /// The position to which scores refer; `None` ignores scores.
    pub evals: Option<EvalRefersTo>,
    /// Whether every move of the main line is a target, regardless of who chose it.
    pub played: bool,
    /// Whether the games contain injected random moves.
    pub noise: bool,
    /// The curve from scores to values.
    pub curve: Curve,
    /// The temperature, above 0, at which the scored moves of a main-line position are combined
    /// into one distribution; `None` makes each of them a separate sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternatives: Option<f32>,
}

/// The targets of the position before a move, from the perspective of the side to move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Label {
    /// Whether the move is the policy's target.
    pub(crate) is_target: bool,
    pub(crate) q: Option<f32>,
    pub(crate) short_term: Option<f32>,
    pub(crate) result: Option<Wdl>,
    pub(crate) moves_left: Option<f32>,
}

/// A node's place in its game, and its label; a node without a label gives no sample.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Labelled {
    /// Number of plies before the move.
    pub(crate) ply: usize,
    /// Plies since the variation left the main line; `None` on the main line.
    pub(crate) variation_ply: Option<usize>,
    pub(crate) label: Option<Label>,
    /// The ordinals of the alternatives, with their shares of the policy; empty if the node's move
    /// is the only target.
    pub(crate) alternatives: Vec<(u8, f32)>,
}

impl TargetRules {
    /// Returns the labels of a record, one entry per node.
    ///
    /// # Errors
    /// [`StrayNode`] if the record's depths do not describe a tree.
    pub(crate) fn label(&self, record: &Record) -> Result<Vec<Labelled>, StrayNode> {
        let places = record.places()?;
        let first_mover = record.first_mover();
        let main_line = self.main_line(record, first_mover);
        let labelled = places.into_iter().map(|place| {
            let label = match place.variation_ply {
                None => main_line[place.ply],
                Some(_) => (self.evals == Some(EvalRefersTo::MovePlayed)).then(|| Label {
                    is_target: true,
                    q: place
                        .eval
                        .map(|eval| self.q(eval, mover(first_mover, place.ply))),
                    short_term: None,
                    result: None,
                    moves_left: None,
                }),
            };
            Labelled {
                ply: place.ply,
                variation_ply: place.variation_ply,
                label,
                alternatives: Vec::new(),
            }
        });
        let mut labelled: Vec<Labelled> = labelled.collect();
        if let (Some(temperature), Some(EvalRefersTo::MovePlayed)) = (self.alternatives, self.evals)
        {
            merge_alternatives(record, &mut labelled, temperature);
        }
        Ok(labelled)
    }

    /// Returns the number of samples that a record gives; 0 if its nodes do not form a tree.
    pub fn samples(&self, record: &Record) -> u64 {
        let labelled = self.label(record).unwrap_or_default();
        let samples = labelled.iter().filter(|place| place.label.is_some());
        samples.count() as u64
    }

    /// Returns the labels of the main line, in order of plies.
    fn main_line(&self, record: &Record, first_mover: Color) -> Vec<Option<Label>> {
        let evals: Vec<Option<Eval>> = record.main_line().map(|node| node.eval).collect();
        let scored = evals.iter().position(Option::is_some);
        let has_random_move =
            self.noise && scored.is_some_and(|first| evals[first..].iter().any(Option::is_none));
        let result = record.result.filter(|_| !has_random_move);
        let result_for = |ply| result.map(|it| it.seen_by(mover(first_mover, ply)));
        // The value target, and the value from which the short-term values of this and earlier
        // positions are computed.
        let values_at = |ply: usize| {
            if let Some(search) = record.search(ply) {
                return Some((search.best_q(), search.root_q()));
            }
            let eval = match self.evals? {
                EvalRefersTo::MovePlayed => evals[ply],
                EvalRefersTo::PositionReached => evals[ply.checked_sub(1)?],
            };
            let q = self.q(eval?, mover(first_mover, ply));
            Some((q, q))
        };
        let mut labels = vec![None; evals.len()];
        // The short-term value one ply later, from the perspective of the side to move there.
        let mut following = result_for(evals.len()).map(Wdl::q);
        for ply in (0..evals.len()).rev() {
            let values = values_at(ply);
            let short_term = values.map(|(_, q)| short_term(q, following));
            following = match record.searches.get(ply) {
                // The average continues across positions that were not searched.
                Some(search) if !search.is_searched() => short_term.or(following.map(|q| -q)),
                _ => short_term,
            };
            let chosen = self.evals == Some(EvalRefersTo::MovePlayed) && evals[ply].is_some();
            let is_target = chosen || self.played || record.search(ply).is_some();
            if is_target || values.is_some() {
                let result = result_for(ply);
                labels[ply] = Some(Label {
                    is_target,
                    q: values.map(|(q, _)| q),
                    short_term,
                    result,
                    moves_left: result.map(|_| {
                        let played = evals.len() - ply;
                        (played + usize::from(record.unplayed)) as f32
                    }),
                });
            }
        }
        labels
    }

    /// Returns the value of a score from the perspective of `mover`.
    fn q(&self, eval: Eval, mover: Color) -> f32 {
        let white = match eval {
            Eval::Centipawns(centipawns) => self.curve.q(centipawns),
            Eval::Mate(moves) => f32::from(moves.signum()),
        };
        mover.fold_wb(white, -white)
    }
}

/// Merges the scored moves of each position of the main line into one label.
fn merge_alternatives(record: &Record, labelled: &mut [Labelled], temperature: f32) {
    let nodes = &record.nodes;
    let is_first_of_line = |&node: &usize| nodes[node].depth == 0 || nodes[node].starts_line;
    let mut node = 0;
    while node < nodes.len() {
        let variations = nodes[node + 1..].iter().take_while(|node| node.depth > 0);
        let next = node + 1 + variations.count();
        let mut group: Vec<(usize, f32)> = Vec::new();
        for other in (node..next).filter(is_first_of_line) {
            let label = labelled[other].label.filter(|label| label.is_target);
            let is_scored = nodes[other].depth <= 1 && nodes[other].eval.is_some();
            let is_new = |(known, _): &(usize, f32)| nodes[*known].ordinal != nodes[other].ordinal;
            if let Some(q) = label.and_then(|label| label.q)
                && is_scored
                && group.iter().all(is_new)
            {
                group.push((other, q));
            }
        }
        if let [(first, _), _, ..] = group[..] {
            let mut shares: Vec<f32> = group.iter().map(|(_, q)| (1.0 + q) / 2.0).collect();
            softmax(&mut shares, temperature);
            let ordinals = group.iter().map(|&(other, _)| nodes[other].ordinal);
            labelled[first].alternatives = ordinals.zip(shares).collect();
            for &(other, _) in &group[1..] {
                labelled[other].label = None;
            }
        }
        node = next;
    }
}

/// Returns the short-term value of a position with value `q`, given the short-term value of the
/// next position. Each is from the perspective of the side to move.
pub(crate) fn short_term(q: f32, following: Option<f32>) -> f32 {
    following.map_or(q, |next| {
        SHORT_TERM_STEP * q - (1.0 - SHORT_TERM_STEP) * next
    })
}

/// Returns the side to move after `ply` plies.
fn mover(first: Color, ply: usize) -> Color {
    if ply.is_multiple_of(2) { first } else { !first }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::record::{Node, SearchResult};

    const RULES: TargetRules = TargetRules {
        evals: Some(EvalRefersTo::MovePlayed),
        played: false,
        noise: false,
        curve: Curve::Lc0,
        alternatives: None,
    };

    fn game(evals: &[Option<i16>], result: Wdl) -> Record {
        let node = |&eval: &Option<i16>| Node {
            ordinal: 0,
            depth: 0,
            starts_line: false,
            eval: eval.map(Eval::Centipawns),
        };
        Record {
            fen: None,
            result: Some(result),
            nodes: evals.iter().map(node).collect(),
            ..Record::default()
        }
    }

    fn labels(rules: TargetRules, record: &Record) -> Vec<Option<Label>> {
        let labelled = rules.label(record).unwrap();
        labelled.into_iter().map(|place| place.label).collect()
    }

    #[test]
    fn a_score_of_the_move_played_is_the_value_before_it() {
        let record = game(&[None, Some(90), Some(-90)], Wdl::Win);
        let labels = labels(RULES, &record);
        let half = Curve::Lc0.q(90);
        assert_eq!(labels[0], None);
        let [black, white] = [labels[1].unwrap(), labels[2].unwrap()];
        assert_eq!((black.q, white.q), (Some(-half), Some(-half)));
        assert_eq!(black.result, Some(Wdl::Loss));
        assert_eq!((black.moves_left, white.moves_left), (Some(2.0), Some(1.0)));
        let last = -half / 6.0 + 5.0 / 6.0;
        assert!((white.short_term.unwrap() - last).abs() < 1e-6);
        let before = -half / 6.0 - 5.0 / 6.0 * last;
        assert!((black.short_term.unwrap() - before).abs() < 1e-6);
    }

    #[test]
    fn a_score_of_the_position_reached_is_the_value_after_the_move() {
        let rules = TargetRules {
            evals: Some(EvalRefersTo::PositionReached),
            ..RULES
        };
        let record = game(&[Some(90), Some(0), None], Wdl::Draw);
        let found = labels(rules, &record);
        assert_eq!(found[0], None);
        assert_eq!(found[1].unwrap().q, Some(-Curve::Lc0.q(90)));
        assert!(!found[1].unwrap().is_target);
        let played = TargetRules {
            played: true,
            ..rules
        };
        let found = labels(played, &record);
        assert!(found.iter().all(|label| label.unwrap().is_target));
        assert_eq!(found[0].unwrap().q, None);
    }

    #[test]
    fn a_random_move_takes_the_result_and_breaks_the_chain() {
        let noise = TargetRules {
            noise: true,
            ..RULES
        };
        let record = game(&[None, Some(90), None, Some(180)], Wdl::Win);
        let found = labels(noise, &record);
        assert!(found[2].is_none());
        for label in [found[1].unwrap(), found[3].unwrap()] {
            assert_eq!((label.result, label.moves_left), (None, None));
            assert_eq!(label.short_term, label.q);
        }
        let quiet = labels(noise, &game(&[None, Some(90), Some(180)], Wdl::Win));
        assert_eq!(quiet[2].unwrap().result, Some(Wdl::Win));
    }

    #[test]
    fn skips_positions_without_a_search() {
        let rules = TargetRules {
            evals: None,
            ..RULES
        };
        let searched = SearchResult::new([(0, 1.0)], 0.5, 0.75);
        let record = Record {
            searches: vec![SearchResult::UNSEARCHED, searched, SearchResult::UNSEARCHED],
            ..game(&[None, Some(90), None, None], Wdl::Win)
        };
        assert_eq!(rules.samples(&record), 1);
        let found = labels(rules, &record);
        assert!(found[0].is_none() && found[2].is_none() && found[3].is_none());
        let label = found[1].unwrap();
        assert!(label.is_target && (label.q.unwrap() - 0.75).abs() < 1e-4);
        // The result is unknown, so the average starts at the last position.
        assert!((label.short_term.unwrap() - 0.5).abs() < 1e-4);
        // The average continues across an unsearched position, after which the game is won.
        let record = Record {
            searches: record.searches[..3].to_vec(),
            ..game(&[None, None, None], Wdl::Win)
        };
        let label = labels(rules, &record)[1].unwrap();
        let expected = 0.5 / 6.0 - 5.0 / 6.0;
        assert!((label.short_term.unwrap() - expected).abs() < 1e-4);
        let played = TargetRules {
            played: true,
            ..rules
        };
        assert_eq!(played.samples(&record), 3);
    }

    #[test]
    fn mates_are_certain() {
        let mut record = game(&[Some(0)], Wdl::Win);
        record.nodes[0].eval = Some(Eval::Mate(-3));
        assert_eq!(labels(RULES, &record)[0].unwrap().q, Some(-1.0));
    }
}
