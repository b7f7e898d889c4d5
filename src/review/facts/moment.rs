//! The reasons why one move was worse than another, as a selection of facts in order.

use super::board::after;
use super::words;
use super::{
    Fact, Outcome, Topic, back_rank_mate, balance, blockade, capture, castling_given_up,
    castling_missed, defence_given_up, defender_removed, discovered_attack, doubled_pawns, forced,
    forced_mate, fork, gives_away, line_opened, mate_threatened, new_passed_pawn, new_threat,
    outcome, passed_pawn_advanced, pawn_ending, pin, promotion, queens_off, recapture, san, skewer,
    threat_left, threatened, trapped_piece,
};
use serde::{Deserialize, Serialize};
use shakmaty::{Chess, Move, Position};

/// Passed pawns are mentioned only if at most this many pieces other than kings and pawns are left.
const ENDGAME: usize = 6;
/// Maximum number of facts per move; more would bury the first one.
const MOST: usize = 2;
/// Number of plies of a line in which material counts; later moves of a line have few visits.
const HORIZON: usize = 6;
/// The maximum difference in centipawns between a score and the material that its line leaves. If
/// the difference is larger, the score is not due to that material.
const ASTRAY: i32 = 300;

/// A line of play that a search expects.
#[derive(Clone, Copy, Debug)]
pub struct Variation<'a> {
    /// Its moves.
    pub moves: &'a [Move],
    /// Whether the side that begins the line was proven to mate with it.
    pub mates: bool,
    /// The line's score in centipawns for the side that begins it, if known.
    pub centipawns: Option<i32>,
}

/// A move, and the move that should have been played.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The position before the move.
    pub before: &'a Chess,
    /// The opponent's move that led to the position.
    pub last: Option<Move>,
    /// The move played.
    pub played: Move,
    /// The best line.
    pub best: Variation<'a>,
    /// The opponent's best line after the move played.
    pub reply: Variation<'a>,
}

/// The reasons why a move is bad, and what the best move would achieve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Reasons {
    /// Facts about the move that was played and what follows it.
    pub played: Vec<Fact>,
    /// Facts about the best move and what follows it.
    pub best: Vec<Fact>,
}

/// The outcome of a line, and the line itself: the search's line or that of the best defence.
struct Counted {
    outcome: Outcome,
    line: Vec<Move>,
}

impl Moment<'_> {
    /// Returns the facts that apply here and explain the move's quality.
    #[must_use]
    pub fn reasons(&self) -> Reasons {
        let lines = (self.outcome_of_played(), self.outcome_of_best());
        let played = self.why_not(&lines.0, &lines.1);
        let mut best = self.why(&lines.0, &lines.1);
        if played.is_empty() && best.is_empty() {
            best = self.merits_of_best();
        }
        Reasons { played, best }
    }

    /// Returns the outcome of the played move and the reply, relative to the position before them.
    fn outcome_of_played(&self) -> Option<Counted> {
        let score = self.reply.centipawns.map(|score| -score);
        let next = after(self.before, self.played);
        self.counted(&[self.played], &next, &self.reply, score)
    }

    /// Returns the outcome of the best line.
    fn outcome_of_best(&self) -> Option<Counted> {
        self.counted(&[], self.before, &self.best, self.best.centipawns)
    }

    /// Returns the outcome of a line that begins in `position`, to which the moves of `first` led.
    /// The outcome counts only if the side that begins the line can force it, and if it fits the
    /// score of the player who moved.
    fn counted(
        &self,
        first: &[Move],
        position: &Chess,
        line: &Variation<'_>,
        score: Option<i32>,
    ) -> Option<Counted> {
        let forced = forced(position, line.moves)?;
        let side = position.turn();
        let most = side.fold_wb(1, -1) * (forced.balance - balance(self.before));
        let of = |line: Vec<Move>| {
            let outcome = outcome(self.before, &line)?;
            let told = &line[first.len()..outcome.plies.max(first.len())];
            let is_forced = outcome.gain(side) <= most
                && !gives_away(position, told)
                && self.fits(&outcome, score);
            is_forced.then_some(Counted { outcome, line })
        };
        let joined = |rest: &[Move]| [first, rest].concat();
        let mut searched = joined(line.moves);
        searched.truncate(HORIZON);
        let expected = of(searched);
        let wins = |counted: &Counted| counted.outcome.gain(side) > 0;
        match expected {
            Some(expected) if wins(&expected) => Some(expected),
            expected => of(joined(&forced.line)).filter(wins).or(expected),
        }
    }

    /// Returns whether the score of the player who moved fits the material that a line leaves.
    fn fits(&self, outcome: &Outcome, score: Option<i32>) -> bool {
        let mover = self.before.turn();
        let gain = outcome.gain(mover);
        let material = mover.fold_wb(1, -1) * balance(self.before) + gain;
        let material = (100 * material).clamp(-1000, 1000);
        score.is_none_or(|score| match gain {
            ..0 => score <= material + ASTRAY,
            _ => score >= material - ASTRAY,
        })
    }

    fn why_not(&self, played: &Option<Counted>, best: &Option<Counted>) -> Vec<Fact> {
        let next = after(self.before, self.played);
        let mover = self.before.turn();
        if next.is_stalemate() {
            let text = "The move is stalemate.".to_owned();
            return vec![Fact::new(
                Topic::Stalemate,
                text,
                next.board().king_of(!mover),
            )];
        }
        let Some(&reply) = self.reply.moves.first() else {
            return Vec::new();
        };
        if self.reply.mates {
            let mut facts = mate(&next, self.reply.moves);
            facts.extend(mate_threatened(self.before, reply));
            return facts;
        }
        let gain = |counted: &Option<Counted>| counted.as_ref().map(|it| it.outcome.gain(mover));
        let is_worse = |lost: i32| lost < 0 && gain(best).is_none_or(|best| lost < best);
        match played {
            Some(played) if is_worse(played.outcome.gain(mover)) => {
                self.material_lost(&next, reply, played)
            }
            _ => self.drawbacks(&next, reply),
        }
    }

    /// Describes how the reply wins material.
    fn material_lost(&self, next: &Chess, reply: Move, played: &Counted) -> Vec<Fact> {
        let rest = &played.line[1..];
        let mut facts = tactics(next, rest);
        if self.reply_is_explained(&facts) {
            let given_up = defence_given_up(self.before, self.played, reply);
            let opened = || line_opened(self.before, self.played, reply);
            let threat = || threatened(self.before, reply);
            facts.extend(given_up.or_else(opened).or_else(threat));
        } else {
            facts.extend(defender_removed(next, rest));
        }
        let plies = played.outcome.plies;
        let moves = match plies {
            1 => san(self.before, self.played),
            plies => words::line(next, &rest[..plies - 1]),
        };
        facts.extend(played.outcome.fact(self.before.turn(), &moves));
        facts
    }

    /// Returns the move's drawbacks if it loses no material.
    fn drawbacks(&self, next: &Chess, reply: Move) -> Vec<Fact> {
        let mover = self.before.turn();
        let best = self.best.moves.first().copied();
        let all: Vec<Move> = [self.played]
            .into_iter()
            .chain(self.reply.moves.iter().copied())
            .collect();
        let of_best = |fact: Option<Fact>, same: Option<Fact>| fact.filter(|_| same.is_none());
        let facts = [
            promotion(next, self.reply.moves, !mover),
            best.and_then(|best| threat_left(self.before, self.played, best, reply)),
            of_best(
                queens_off(self.before, &all, !mover),
                queens_off(self.before, self.best.moves, !mover),
            ),
            of_best(
                pawn_ending(self.before, &all),
                pawn_ending(self.before, self.best.moves),
            ),
            new_passed_pawn(next, reply).filter(|_| is_endgame(next)),
            best.and_then(|best| castling_given_up(self.before, &all, best)),
            new_threat(next, reply),
            blockade(next, reply),
            doubled_pawns(next, self.reply.moves),
        ];
        facts.into_iter().flatten().take(MOST).collect()
    }

    /// Returns whether the facts already explain the first move of the reply.
    fn reply_is_explained(&self, facts: &[Fact]) -> bool {
        let square = self.reply.moves.first().map(|mv| mv.to());
        let is_about =
            |fact: &Fact| fact.topic == Topic::Hanging && fact.squares.first().copied() == square;
        facts.iter().any(is_about)
    }

    fn why(&self, played: &Option<Counted>, best: &Option<Counted>) -> Vec<Fact> {
        let Some(&first) = self.best.moves.first() else {
            return Vec::new();
        };
        if first == self.played {
            return Vec::new();
        }
        if self.best.mates {
            return mate(self.before, self.best.moves);
        }
        let mover = self.before.turn();
        let gain = |counted: &Option<Counted>| counted.as_ref().map(|it| it.outcome.gain(mover));
        let back = self
            .last
            .and_then(|last| recapture(self.before, last, first));
        let is_better = gain(best) > gain(played);
        let mut facts = Vec::new();
        match best {
            Some(best) if best.outcome.gain(mover) > 0 && (is_better || played.is_none()) => {
                facts = match back {
                    Some(back) => vec![back],
                    None => tactics(self.before, &best.line),
                };
                let moves = words::line(self.before, &best.line[..best.outcome.plies]);
                facts.extend(best.outcome.fact(mover, &moves));
            }
            _ if is_better => facts.extend(back),
            _ => {}
        }
        let promotes = || promotion(self.before, self.best.moves, mover);
        if facts.is_empty() {
            facts.extend(promotes());
        }
        facts
    }

    /// Returns the merits of the best move, if it neither wins material nor mates.
    fn merits_of_best(&self) -> Vec<Fact> {
        let Some(&best) = self.best.moves.first() else {
            return Vec::new();
        };
        let mover = self.before.turn();
        let facts = [
            queens_off(self.before, self.best.moves, mover),
            castling_missed(self.before, best),
            new_threat(self.before, best),
            new_passed_pawn(self.before, best).filter(|_| is_endgame(self.before)),
            passed_pawn_advanced(self.before, best),
            blockade(self.before, best),
            doubled_pawns(self.before, self.best.moves),
        ];
        let first = facts.into_iter().flatten().next();
        first.filter(|_| best != self.played).into_iter().collect()
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

/// Returns the tactics of the side to move: those of its first move in the line or, if it has none,
/// those of its second.
fn tactics(position: &Chess, line: &[Move]) -> Vec<Fact> {
    let at = |plies: usize| {
        let (before, rest) = line.split_at_checked(plies)?;
        let mut position = position.clone();
        before
            .iter()
            .for_each(|&mv| position = after(&position, mv));
        let &mv = rest.first()?;
        // Recapturing is not a tactic.
        let takes_back = before.last().is_some_and(|last| last.to() == mv.to());
        Some(match takes_back {
            true => Vec::new(),
            false => tactics_of(&position, mv),
        })
    };
    [0, 2]
        .into_iter()
        .filter_map(at)
        .find(|facts| !facts.is_empty())
        .unwrap_or_default()
}

/// Returns the tactics of one move.
fn tactics_of(position: &Chess, mv: Move) -> Vec<Fact> {
    let all = [fork, skewer, discovered_attack, capture, pin, trapped_piece];
    let facts = all.into_iter().filter_map(|fact| fact(position, mv));
    facts.take(MOST).collect()
}

fn is_endgame(position: &Chess) -> bool {
    let board = position.board();
    (board.occupied() & !board.pawns() & !board.kings()).count() <= ENDGAME
}

#[cfg(test)]
mod tests {
    use super::super::testing::{line, mv, position};
    use super::*;

    /// Returns the sentences about the played move and those about the best move.
    fn told(
        fen: &str,
        played: &str,
        best: &str,
        reply: &str,
        mates: [bool; 2],
    ) -> [Vec<String>; 2] {
        scored(fen, [played, best, reply], mates, None)
    }

    /// Returns the same sentences for a reply with a score.
    fn scored(
        fen: &str,
        [played, best, reply]: [&str; 3],
        mates: [bool; 2],
        score: Option<i32>,
    ) -> [Vec<String>; 2] {
        let before = position(fen);
        let played = mv(&before, played);
        let best = line(&before, best);
        let reply = line(&after(&before, played), reply);
        let moment = Moment {
            before: &before,
            last: None,
            played,
            best: Variation {
                moves: &best,
                mates: mates[0],
                centipawns: None,
            },
            reply: Variation {
                moves: &reply,
                mates: mates[1],
                centipawns: score,
            },
        };
        let reasons = moment.reasons();
        [reasons.played, reasons.best].map(|facts| facts.into_iter().map(|it| it.text).collect())
    }

    #[test]
    fn a_piece_is_left_where_it_is_attacked() {
        let fen = "4k3/8/8/4r3/4N3/8/7P/6K1 w - - 0 1";
        let [played, best] = told(fen, "h3", "Ng3 Kd7", "Rxe4 Kf2", [false; 2]);
        assert_eq!(
            played,
            [
                "Rxe4 takes the knight on e4, which nothing defends.",
                "Black was threatening Rxe4 before the move.",
                "After Rxe4, White has lost a knight.",
            ]
        );
        assert!(best.is_empty());
    }

    #[test]
    fn lines_that_go_astray_say_nothing() {
        let fen = "4k3/8/8/4r3/4N3/8/7P/6K1 w - - 0 1";
        let told = |reply: &str, score| {
            let [played, _] = scored(fen, ["h3", "Ng3 Kd7", reply], [false; 2], score);
            played.len()
        };
        assert_eq!(told("Rxe4 Kf2", Some(500)), 3);
        // The score for Black does not fit a rook for a pawn.
        assert_eq!(told("Rxe4 Kf2", Some(-100)), 0);
        // Results beyond the horizon do not count, but the threat is reported.
        assert_eq!(told("Rd5 Kf2 Rd4 Kg2 Rd5 Kf2 Re5 Kf3 Rxe4", None), 1);
    }

    #[test]
    fn a_fork_is_missed() {
        let fen = "r3k3/8/8/3N4/8/8/7P/4K3 w q - 0 1";
        let [played, best] = told(fen, "h3", "Nc7+ Kd7 Nxa8", "Rc8", [false; 2]);
        assert!(played.is_empty());
        assert_eq!(
            best,
            [
                "Nc7+ forks the rook on a8 and the king on e8.",
                "After Nc7+ Kd7 Nxa8, White has won a rook.",
            ]
        );
    }

    #[test]
    fn mates_are_told_before_all_else() {
        let fen = "3r2k1/5ppp/8/8/8/8/P4PPP/R5K1 w - - 0 1";
        let [played, best] = told(fen, "Rc1", "Kf1", "h6", [false; 2]);
        assert!(played.is_empty() && best.is_empty());
        let fen = "3r2k1/5ppp/8/8/8/8/P4PPP/4R1K1 w - - 0 1";
        let [played, best] = told(fen, "Ra1", "Re8+ Rxe8", "Rd1+ Rxd1", [false; 2]);
        assert!(played.is_empty() && best.is_empty(), "{played:?} {best:?}");
        let fen = "3r2k1/5ppp/8/8/8/8/B4PPP/4R1K1 w - - 0 1";
        let [played, best] = told(fen, "Re2", "h3", "Rd1+ Re1 Rxe1#", [false, true]);
        assert_eq!(
            played,
            [
                "Black mates in 2 moves, beginning with Rd1+.",
                "The mate is on the back rank: White's king is shut in by its own men.",
            ]
        );
        assert!(best.is_empty());
        let fen = "6k1/5ppp/8/8/8/8/B4PPP/4R1K1 w - - 0 1";
        let [_, best] = told(fen, "h3", "Re8#", "Kf8", [true, false]);
        assert_eq!(
            best,
            [
                "Re8# is mate.",
                "The mate is on the back rank: Black's king is shut in by its own men.",
            ]
        );
    }

    #[test]
    fn nothing_is_invented() {
        let fen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
        let [played, best] = told(fen, "a4", "e4 e5 Nf3 Nc6", "e5 e4 Nf6", [false; 2]);
        assert!(played.is_empty() && best.is_empty(), "{played:?} {best:?}");
        // A line that ends in the middle of an exchange says nothing about material.
        let fen = "4k3/8/3p4/4n3/8/8/4R3/4K3 w - - 0 1";
        let [played, _] = told(fen, "Rxe5+", "Kd1", "", [false; 2]);
        assert!(played.is_empty());
    }

    #[test]
    fn a_stalemate_is_told() {
        for (fen, mv, is_stalemate) in [
            ("7k/5Q2/8/6K1/8/8/8/8 w - - 0 1", "Kg6", true),
            ("7k/8/8/5QK1/8/8/8/8 w - - 0 1", "Qf7", true),
            ("k7/8/1K6/8/8/8/8/2Q5 w - - 0 1", "Qc7", true),
            ("7k/8/8/5QK1/8/8/8/8 w - - 0 1", "Qf6+", false),
            ("7k/8/8/5QK1/8/8/8/8 w - - 0 1", "Qe6", false),
            ("7k/5Q2/8/6K1/8/8/8/8 w - - 0 1", "Qe7", false),
            ("k7/8/1K6/8/8/8/8/2Q5 w - - 0 1", "Qd2", false),
        ] {
            let [played, _] = told(fen, mv, "", "", [false; 2]);
            let text = ["The move is stalemate."];
            assert_eq!(played, text[..usize::from(is_stalemate)], "{mv} in {fen}");
        }
    }
}
