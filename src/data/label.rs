//! Which moves of a game are training targets, and what its scores and its
//! result say of its positions.
//!
//! PGN leaves open what a score after a move judges, so the user names the
//! [`Reading`]. Each label is a sample of its own: a position on the game's
//! line that also starts variations has several, which are never merged.
//!
//! A record may also carry what searches said of the positions of its own
//! line. Each of those is a sample with the search's policy and values, and
//! the scores say nothing of it.
//!
//! # Alternatives
//! Engines may judge several moves of a position, the best of which is played
//! or a variation, and each other one a variation too. Read as alternatives
//! they are one sample, whose policy is a distribution: a softmax over the
//! chances of winning, (1 + q)/2, at a temperature. Its value is that of the
//! first of them.
//!
//! # Injected random moves
//! A source may play random moves into engines' games to reach unusual
//! positions. They are the moves of the own line without a score after the
//! first that has one. In a game with such a move neither the result nor its
//! distance is a target anywhere: before such a move the result is its doing
//! rather than the position's, and after it comes from a game that play would
//! not have reached, in which more of them may follow.
//!
//! # Surprise
//! How far the value of a position is from the one that was last known before it on
//! the own line, both from one side's view: large after a blunder, small while
//! both sides play what was foreseen. A variation is as surprising as the position
//! it starts from. [`super::loader::Focus`] goes by it.
//!
//! # Short-term value
//! An exponential average of the values that follow on the own line, as in
//! Lc0's rescorer: st(t) = q(t)/6 − 5/6 · st(t + 1), each from its mover's
//! view. Past the last move stands the result. Where the chain of scores
//! breaks or there is no result, it starts anew from st = q.

use serde::{Deserialize, Serialize};
use shakmaty::Color;

use super::curve::Curve;
use super::record::{Eval, Record, StrayNode};
use super::sample::Wdl;
use crate::nn::softmax;

/// Share of the position's own value in its short-term value.
const SHORT_TERM_STEP: f32 = 1.0 / 6.0;

/// What a score in a PGN belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Evals {
    /// The engine that chose the move wrote the score: both are targets of the
    /// position before the move. In variations every move is, with the last
    /// score on the way.
    Chooser,
    /// An analysis of a game already played, as Lichess writes it: the score
    /// judges the position after the move. Variations are ignored.
    Analysis,
}

/// How a source's games are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// What scores belong to; `None` ignores them.
    pub evals: Option<Evals>,
    /// Whether every move of the own line is a target, whoever chose it.
    pub played: bool,
    /// Whether the games contain injected random moves.
    pub noise: bool,
    /// The curve from scores to values.
    pub curve: Curve,
    /// The temperature, above 0, at which the scored moves of a position on the
    /// own line make one distribution; `None` keeps each a sample of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternatives: Option<f32>,
}

/// What is known of the position before a move, from its mover's view.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Label {
    /// Whether the move is the policy's target.
    pub(crate) is_target: bool,
    pub(crate) q: Option<f32>,
    pub(crate) short_term: Option<f32>,
    pub(crate) result: Option<Wdl>,
    pub(crate) moves_left: Option<f32>,
}

/// A node's place in its game and what is known there; no label, no sample.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Labelled {
    /// Plies before the move.
    pub(crate) ply: usize,
    /// Plies since the variation left the own line; `None` on it.
    pub(crate) off_line: Option<usize>,
    pub(crate) label: Option<Label>,
    /// How far the value is from what the game had let expect, 0 to 2; `None`
    /// where that cannot be told.
    pub(crate) surprise: Option<f32>,
    /// The moves that share the policy, by their ordinals; none where the move
    /// alone is the target.
    pub(crate) alternatives: Vec<(u8, f32)>,
}

impl Reading {
    /// The labels of a record, one entry a node.
    ///
    /// # Errors
    /// [`StrayNode`] if the record's depths do not describe a tree.
    pub(crate) fn label(&self, record: &Record) -> Result<Vec<Labelled>, StrayNode> {
        let places = record.places()?;
        let first_mover = record.first_mover();
        let own = self.own_line(record, first_mover);
        let surprises = surprises(&own);
        let labelled = places.into_iter().map(|place| {
            let label = match place.off_line {
                None => own[place.ply],
                Some(_) => (self.evals == Some(Evals::Chooser)).then(|| Label {
                    is_target: true,
                    q: place
                        .eval
                        .map(|eval| self.q(eval, mover(first_mover, place.ply))),
                    short_term: None,
                    result: None,
                    moves_left: None,
                }),
            };
            let from = place.ply - place.off_line.unwrap_or(0);
            let surprise = surprises.get(from).copied().flatten();
            Labelled {
                ply: place.ply,
                off_line: place.off_line,
                label,
                surprise,
                alternatives: Vec::new(),
            }
        });
        let mut labelled: Vec<Labelled> = labelled.collect();
        if let (Some(temperature), Some(Evals::Chooser)) = (self.alternatives, self.evals) {
            gather(record, &mut labelled, temperature);
        }
        Ok(labelled)
    }

    /// How many samples a record gives; none if it describes no tree.
    #[must_use]
    pub fn samples(&self, record: &Record) -> u64 {
        let labelled = self.label(record).unwrap_or_default();
        let samples = labelled.iter().filter(|place| place.label.is_some());
        samples.count() as u64
    }

    /// The labels of the own line, by ply.
    fn own_line(&self, record: &Record, first_mover: Color) -> Vec<Option<Label>> {
        let evals: Vec<Option<Eval>> = record.own_line().map(|node| node.eval).collect();
        let scored = evals.iter().position(Option::is_some);
        let has_random_move =
            self.noise && scored.is_some_and(|first| evals[first..].iter().any(Option::is_none));
        let result = record.result.filter(|_| !has_random_move);
        let result_for = |ply| match mover(first_mover, ply) {
            Color::White => result,
            Color::Black => result.map(Wdl::reversed),
        };
        // The value that is a target, and the one that the short-term value of
        // the positions before averages.
        let values_at = |ply: usize| {
            if let Some(search) = record.searches.get(ply) {
                return Some((search.best_q(), search.root_q()));
            }
            let eval = match self.evals? {
                Evals::Chooser => evals[ply],
                Evals::Analysis => evals[ply.checked_sub(1)?],
            };
            let q = self.q(eval?, mover(first_mover, ply));
            Some((q, q))
        };
        let mut labels = vec![None; evals.len()];
        // The short-term value one ply later, from that position's mover.
        let mut following = result_for(evals.len()).map(Wdl::q);
        for ply in (0..evals.len()).rev() {
            let values = values_at(ply);
            let short_term = values.map(|(_, q)| short_term(q, following));
            following = short_term;
            let chosen = self.evals == Some(Evals::Chooser) && evals[ply].is_some();
            let is_target = chosen || self.played || ply < record.searches.len();
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

    /// The value of a score for `mover`.
    fn q(&self, eval: Eval, mover: Color) -> f32 {
        let white = match eval {
            Eval::Centipawns(centipawns) => self.curve.q(centipawns),
            Eval::Mate(moves) => f32::from(moves.signum()),
        };
        mover.fold_wb(white, -white)
    }
}

/// How surprising each position of the own line is.
fn surprises(own: &[Option<Label>]) -> Vec<Option<f32>> {
    // The value from the view of who is to move.
    let mut expected: Option<f32> = None;
    let surprise = |label: &Option<Label>| {
        let known = label.and_then(|label| label.q);
        let surprise = known
            .zip(expected)
            .map(|(known, expected)| (known - expected).abs());
        expected = known.or(expected).map(|value| -value);
        surprise
    };
    own.iter().map(surprise).collect()
}

/// Makes one label of all those of a position on the own line.
fn gather(record: &Record, labelled: &mut [Labelled], temperature: f32) {
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

/// A position's short-term value: from its own value and the short-term value
/// of the position that `follows`, each from its mover's view.
pub(crate) fn short_term(q: f32, follows: Option<f32>) -> f32 {
    match follows {
        Some(following) => SHORT_TERM_STEP * q - (1.0 - SHORT_TERM_STEP) * following,
        None => q,
    }
}

/// Who moves after so many plies.
fn mover(first: Color, ply: usize) -> Color {
    if ply.is_multiple_of(2) { first } else { !first }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::pgn::parse_game;
    use crate::data::record::Node;

    const READING: Reading = Reading {
        evals: Some(Evals::Chooser),
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

    fn labels(reading: Reading, record: &Record) -> Vec<Option<Label>> {
        let labelled = reading.label(record).unwrap();
        labelled.into_iter().map(|place| place.label).collect()
    }

    #[test]
    fn a_chooser_s_score_is_the_value_before_its_move() {
        let record = game(&[None, Some(90), Some(-90)], Wdl::Win);
        let labels = labels(READING, &record);
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
    fn an_analyst_s_score_is_the_value_after_the_move() {
        let reading = Reading {
            evals: Some(Evals::Analysis),
            ..READING
        };
        let record = game(&[Some(90), Some(0), None], Wdl::Draw);
        let found = labels(reading, &record);
        assert_eq!(found[0], None);
        assert_eq!(found[1].unwrap().q, Some(-Curve::Lc0.q(90)));
        assert!(!found[1].unwrap().is_target);
        let played = Reading {
            played: true,
            ..reading
        };
        let found = labels(played, &record);
        assert!(found.iter().all(|label| label.unwrap().is_target));
        assert_eq!(found[0].unwrap().q, None);
    }

    #[test]
    fn a_random_move_takes_the_result_and_breaks_the_chain() {
        let noise = Reading {
            noise: true,
            ..READING
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
    fn blunders_surprise_and_so_do_the_variations_after_them() {
        let text = "1. e4 {[%eval 0.3]} e5 {[%eval 0.3]} 2. Qh5 {[%eval 0.3]} Ke7 3. Qxe5# \
                    {[%eval #1]} (3. Nf3 {[%eval 0.1]} 3... Nf6 {[%eval 0.1]}) *";
        let record = parse_game(text.as_bytes()).unwrap();
        let labelled = READING.label(&record).unwrap();
        let surprises: Vec<Option<f32>> = labelled.iter().map(|place| place.surprise).collect();
        // Black's blunder is unlabelled; what White is thought to have then is
        // told by the value before it.
        let mate = Some(1.0 - Curve::Lc0.q(30));
        assert_eq!(
            surprises,
            [None, Some(0.0), Some(0.0), None, mate, mate, mate]
        );
    }

    #[test]
    fn mates_are_certain() {
        let mut record = game(&[Some(0)], Wdl::Win);
        record.nodes[0].eval = Some(Eval::Mate(-3));
        assert_eq!(labels(READING, &record)[0].unwrap().q, Some(-1.0));
    }
}
