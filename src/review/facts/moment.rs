//! The reasons why one move was worse than another, as a selection of facts in order: what the reply
//! wins, then what the better move would have won or kept, then positional facts.

use super::board::after;
use super::counted::counted;
use super::course::{Course, ScoreDrop};
use super::ends::{less_at_the_end, same_at_the_end};
use super::positional::{drawbacks, merits, positional};
use super::situation::{Moment, Variation};
use super::words;
use super::{
    Fact, Outcome, Topic, back_rank_mate, defence_given_up, defender_removed, forced_mate, kept,
    line_opened, mate_threatened, promotion, recapture, san, tactics, threatened,
};
use serde::{Deserialize, Serialize};
use shakmaty::{Chess, Move, Position, Role};

/// A loss of more than this many centipawns without material has a reason that the lines do not
/// reach, such as an attack on the king; it is not called positional.
const POSITIONAL: i32 = 300;
/// Number of moves after which a lost pawn is the one that was taken.
const SHORT: usize = 3;
/// A gain by the best move beside a gain by the reply has to come within this many plies.
const NEAR: usize = 5;
/// Number of plies that a line must have for it to show that no material is lost.
const LONG: usize = 6;

/// The reasons why a move is bad, and what the best move would achieve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Reasons {
    /// Facts about the move that was played and what follows it.
    pub played: Vec<Fact>,
    /// Facts about the best move and what follows it.
    pub best: Vec<Fact>,
}

impl Reasons {
    /// Returns whether there is a reason.
    pub fn is_some(&self) -> bool {
        !self.played.is_empty() || !self.best.is_empty()
    }
}

/// The material in both lines, as far as it is known.
struct Lines {
    played: Option<Course>,
    best: Option<Course>,
    drop: ScoreDrop,
}

impl Moment<'_> {
    /// Returns the facts that apply here and explain the move's quality.
    pub fn reasons(&self) -> Reasons {
        let next = after(self.before, self.played);
        if next.is_stalemate() {
            let king = next.board().king_of(next.turn());
            let text = "The move is stalemate.".to_owned();
            let fact = Fact::new(Topic::Stalemate, text, king);
            return Reasons {
                played: vec![fact],
                best: self.mate_missed(),
            };
        }
        let mut lines = self.lines();
        let material = |lines: &Lines| Reasons {
            played: self.what_the_reply_wins(&next, lines),
            best: self.what_was_better(lines),
        };
        let reasons = material(&lines);
        if reasons.is_some() {
            return reasons;
        }
        let mut others = self.without_material(&next);
        if let Some(fact) = self.positional(&lines) {
            others.played.insert(0, fact);
            return others;
        }
        lines.drop.at_length = true;
        let reasons = material(&lines);
        if reasons.is_some() {
            return reasons;
        }
        let unfinished = self.unfinished(&next);
        if !unfinished.is_empty() {
            others.played = unfinished;
            others.best.splice(0..0, self.less_at_the_end(&lines));
        } else if let Some(fact) = self.less_at_the_end(&lines) {
            others.best.insert(0, fact);
        } else {
            others.played.splice(0..0, self.same_at_the_end(&lines));
        }
        others
    }

    fn lines(&self) -> Lines {
        let first = [self.played];
        let course = |first: &[Move], line: &Variation<'_>| match self.is_judged {
            true => Some(Course::new(self.before, [first, line.moves].concat())),
            false => counted(self.before, first, line),
        };
        let scores = self.best.centipawns.zip(self.reply.centipawns);
        Lines {
            played: course(&first, &self.reply),
            best: course(&[], &self.best),
            drop: ScoreDrop {
                scores: scores.map(|(best, reply)| [best, -reply]),
                at_length: false,
            },
        }
    }

    /// Returns what the opponent's reply wins: a mate, material or a new queen.
    fn what_the_reply_wins(&self, next: &Chess, lines: &Lines) -> Vec<Fact> {
        let Some(&reply) = self.reply.moves.first() else {
            return Vec::new();
        };
        if self.reply.mates {
            let mut facts = mate(next, self.reply.moves);
            facts.extend(mate_threatened(self.before, reply));
            return facts;
        }
        if let Some((course, outcome)) = lines.lost() {
            return self.material_lost(next, reply, course, outcome);
        }
        let other = || promotion(self.before, self.best.moves, next.turn());
        let fact = promotion(next, self.reply.moves, next.turn());
        fact.filter(|_| other().is_none()).into_iter().collect()
    }

    /// Describes how the reply wins material.
    fn material_lost(
        &self,
        next: &Chess,
        reply: Move,
        course: &Course,
        outcome: &Outcome,
    ) -> Vec<Fact> {
        let quiet = outcome.quiet.max(outcome.plies);
        let rest = &course.line[1..quiet.max(1)];
        let mut facts = tactics(next, rest);
        if is_explained(reply, &facts) {
            let given_up = defence_given_up(self.before, self.played, reply);
            let opened = || line_opened(self.before, self.played, reply);
            let threat = || threatened(self.before, reply);
            facts.extend(given_up.or_else(opened).or_else(threat));
        } else {
            facts.extend(defender_removed(next, rest));
        }
        // A move that captures is part of the exchange.
        let told = match self.played.is_capture() || outcome.plies < 2 {
            true => words::line(self.before, &course.line[..outcome.plies.max(1)]),
            false => words::line(next, &course.line[1..outcome.plies]),
        };
        facts.extend(outcome.fact(self.before.turn(), &told));
        facts
    }

    /// Returns what the better move would have won or kept.
    fn what_was_better(&self, lines: &Lines) -> Vec<Fact> {
        let Some(&first) = self.best.moves.first() else {
            return Vec::new();
        };
        if first == self.played {
            return Vec::new();
        }
        if self.best.mates {
            return self.mate_missed();
        }
        let mover = self.before.turn();
        let back = || {
            let last = self.last.filter(|last| last.to() != self.played.to());
            recapture(self.before, last?, first)
        };
        let lost = lines.lost();
        let is_near = |outcome: &Outcome| lost.is_none() || outcome.plies <= NEAR;
        if let Some((course, outcome)) = lines.won().filter(|(_, it)| is_near(it)) {
            let line = &course.line[..outcome.quiet.max(outcome.plies)];
            if let Some(back) = back() {
                return vec![back];
            }
            let mut facts = tactics(self.before, line);
            let told = words::line(self.before, &line[..outcome.plies]);
            facts.extend(outcome.fact(mover, &told));
            return facts;
        }
        if let Some((worse, outcome)) = lost.filter(|_| self.is_judged) {
            // After several exchanges of pawns, none of them is the lost one.
            let counts = |role| role != Role::Pawn || outcome.plies <= SHORT;
            let is_lost = |role| counts(role) && outcome.loses(mover, role);
            let worse = &worse.line[..outcome.plies];
            return kept(self.before, self.best.moves, worse, is_lost)
                .into_iter()
                .collect();
        }
        let all = [&[self.played], self.reply.moves].concat();
        let other = || promotion(self.before, &all, mover);
        let fact = promotion(self.before, self.best.moves, mover);
        fact.filter(|_| other().is_none()).into_iter().collect()
    }

    fn mate_missed(&self) -> Vec<Fact> {
        match self.best.mates && self.best.moves.first() != Some(&self.played) {
            true => mate(self.before, self.best.moves),
            false => Vec::new(),
        }
    }

    /// Returns the tactics of a judge's line that is never quiet, so that its material cannot be
    /// told. Captures show that it is not quiet, and do not explain it.
    fn unfinished(&self, next: &Chess) -> Vec<Fact> {
        let facts = match self.is_judged {
            true => tactics(next, self.reply.moves),
            false => Vec::new(),
        };
        let is_aimed = |fact: &Fact| {
            matches!(
                fact.topic,
                Topic::Fork | Topic::Skewer | Topic::Trapped | Topic::Discovered
            )
        };
        facts.into_iter().filter(is_aimed).collect()
    }

    /// States what the player has less at the end of a judge's line than with the best move.
    fn less_at_the_end(&self, lines: &Lines) -> Option<Fact> {
        let courses = [lines.played.as_ref()?, lines.best.as_ref()?];
        let best = san(self.before, *self.best.moves.first()?);
        let is_known = self.is_judged && !self.best.mates && !self.reply.mates;
        let fact = || less_at_the_end(self.before, courses, lines.drop, &best);
        is_known.then(fact).flatten()
    }

    /// States that both lines end with the same material, if long lines of a judge show it.
    fn same_at_the_end(&self, lines: &Lines) -> Option<Fact> {
        let courses = [lines.played.as_ref()?, lines.best.as_ref()?];
        let best = san(self.before, *self.best.moves.first()?);
        let fact = || same_at_the_end(self.before, courses, &best);
        self.may_be_positional(lines).then(fact).flatten()
    }

    /// Returns the positional facts of a move that loses no material.
    fn without_material(&self, next: &Chess) -> Reasons {
        let mut reasons = Reasons {
            played: drawbacks(self, next),
            best: Vec::new(),
        };
        if reasons.played.is_empty() && self.best.moves.first() != Some(&self.played) {
            reasons.best.extend(merits(self));
        }
        reasons
    }

    /// States that the loss is positional, if long lines of a judge show that it is not one of
    /// material and if it is not too large.
    fn positional(&self, lines: &Lines) -> Option<Fact> {
        let (played, best) = (lines.played.as_ref()?, lines.best.as_ref()?);
        let [before, after] = lines.drop.scores?;
        let fact = || positional(played, best, before - after);
        self.may_be_positional(lines).then(fact).flatten()
    }

    /// Returns whether the lines of a judge are long enough to show that the loss is not one of
    /// material, and the loss is not too large.
    fn may_be_positional(&self, lines: &Lines) -> bool {
        let is_long = self.reply.moves.len() >= LONG && self.best.moves.len() >= LONG;
        let is_known = self.is_judged && is_long && !self.best.mates && !self.reply.mates;
        let is_small = |[before, after]: [i32; 2]| before - after <= POSITIONAL;
        is_known && lines.drop.scores.is_some_and(is_small)
    }
}

impl Lines {
    /// Returns the material that the move loses and the best move does not.
    fn lost(&self) -> Option<(&Course, &Outcome)> {
        let played = self.played.as_ref()?;
        let outcome = played.lasting(-1, self.best.as_ref(), self.drop)?;
        Some((played, outcome))
    }

    /// Returns the material that the best move wins and the move does not.
    fn won(&self) -> Option<(&Course, &Outcome)> {
        let best = self.best.as_ref()?;
        let outcome = best.lasting(1, self.played.as_ref(), self.drop)?;
        Some((best, outcome))
    }
}

/// Returns the mate at the end of a line, and its pattern.
fn mate(position: &Chess, line: &[Move]) -> Vec<Fact> {
    let Some(fact) = forced_mate(position, line) else {
        return Vec::new();
    };
    let mut end = position.clone();
    line.iter().for_each(|&mv| end = after(&end, mv));
    [fact].into_iter().chain(back_rank_mate(&end)).collect()
}

/// Returns whether the facts already explain a move as a capture that gains material.
fn is_explained(mv: Move, facts: &[Fact]) -> bool {
    let is_about =
        |fact: &Fact| fact.topic == Topic::Hanging && fact.squares.first() == Some(&mv.to());
    facts.iter().any(is_about)
}

#[cfg(test)]
mod tests;
