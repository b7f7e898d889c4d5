//! Makes a report from a game and the results for its positions.

use super::cache::Analysis;
use super::curve::{Evaluation, accuracy, mean_accuracy, percent, weights};
use super::draws::draws;
use super::facts::{Moment, Reasons, Variation, san};
use super::marks::{Grading, Mark, MateEvent, bad_mark, is_only_move, mate_event};
use super::people::{self, RATINGS};
use super::phase::{Phase, phases};
use super::rating::{LogLikelihood, add, estimate};
use super::report::{
    GameReport, LineMove, LineReport, MoveReport, PlyReport, Report, Side, SideReport, StartReport,
};
use super::source::{Source, number};
use crate::chess::{Ending, Game, fen};
use crate::openings::named_opening;
use shakmaty::{Chess, Color, Move, Position};

/// The rating to which words refer if none is known.
const USUAL_RATING: u16 = 1500;
/// Maximum number of moves of a line that are shown, unless it mates.
const SHOWN: usize = 16;

/// How reliable marks from Tessera's own scores are (bench/review.md).
const OWN_RELIABILITY: &str = "These marks come from Tessera's own scores, which overlook many mistakes: in 17 amateur games \
     kept apart, tessera-xs with 800 nodes marked 84 of 144 mistakes (? and ??), and 7 other moves. An engine such as \
     Stockfish as judge finds more.";

/// The settings of a review.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// The external engine whose scores are used.
    pub judge: Option<String>,
    /// The network of Tessera's own search, if its scores are used.
    pub network: Option<String>,
    /// Why the judge's scores are not used, although there is one.
    pub judge_failure: Option<String>,
    /// The network used to predict people's moves.
    pub people: Option<String>,
    /// Nodes for each position.
    pub nodes: u64,
    /// The rating to which words refer; by default the player's.
    pub elo: Option<u16>,
    /// The side that is reviewed; by default both.
    pub side: Option<Color>,
}

/// Returns the report of a game.
pub fn report(source: &Source, analysis: &Analysis, setting: &Setting) -> Report {
    let reporter = Reporter::new(source, analysis, setting);
    let mut likelihoods = [(LogLikelihood::default(), 0); 2];
    for (ply, shares) in analysis.people.iter().enumerate() {
        let is_choice = reporter.positions[ply].legal_moves().len() > 1;
        if let Some(shares) = shares.filter(|_| is_choice) {
            let (sum, moves) = &mut likelihoods[reporter.side(ply) as usize];
            add(sum, &shares.played);
            *moves += 1;
        }
    }
    let rating = |side: Color| {
        let (sum, moves) = &likelihoods[side as usize];
        let guess = estimate(sum, *moves).map(|rating| rating.estimate);
        let rating = setting.elo.or(source.rating(side)).or(guess);
        let rating = rating.unwrap_or(USUAL_RATING);
        // Words refer to round ratings.
        ((rating + 50) / 100 * 100).clamp(RATINGS[0], RATINGS[RATINGS.len() - 1])
    };
    let ratings = [Color::Black, Color::White].map(rating);
    let plies: Vec<PlyReport> = (0..reporter.moves.len())
        .map(|ply| reporter.ply(ply, ratings[reporter.side(ply) as usize]))
        .collect();
    let side = |color: Color| reporter.side_report(color, &plies, &likelihoods[color as usize]);
    Report {
        judge: setting.judge.clone(),
        network: setting.network.clone(),
        people: setting.people.clone(),
        nodes: setting.nodes,
        reliability: setting.judge.is_none().then(|| OWN_RELIABILITY.to_owned()),
        game: reporter.game_report(),
        white: side(Color::White),
        black: side(Color::Black),
        side: setting.side.map(Side::from),
        ratings: RATINGS,
        start: StartReport {
            fen: fen(reporter.positions[0]),
            win: reporter.win(0),
        },
        plies,
    }
}

/// Returns the report of a game before its analysis: its moves, players and opening.
pub fn outline(source: &Source, setting: &Setting) -> Report {
    let mut outline = report(source, &Analysis::new(&source.game), setting);
    outline.game.warnings = remarks(source, setting);
    outline
}

/// Returns the report of a game that nobody has scored yet: its moves, players and opening.
pub fn unscored(source: &Source, side: Option<Color>) -> Report {
    let setting = Setting {
        judge: None,
        network: None,
        judge_failure: None,
        people: None,
        nodes: 0,
        elo: None,
        side,
    };
    outline(source, &setting)
}

/// Returns the remarks on a review that are known at its beginning.
fn remarks(source: &Source, setting: &Setting) -> Vec<String> {
    let cut_off = source.cut_off().map(|it| format!("The game was {it}."));
    cut_off
        .into_iter()
        .chain(setting.judge_failure.clone())
        .collect()
}

struct Reporter<'a> {
    source: &'a Source,
    analysis: &'a Analysis,
    setting: &'a Setting,
    positions: Vec<&'a Chess>,
    moves: Vec<Move>,
    phases: Vec<Phase>,
    /// The game's ending by rule, including claimed draws.
    ending: Option<Ending>,
}

impl<'a> Reporter<'a> {
    fn new(source: &'a Source, analysis: &'a Analysis, setting: &'a Setting) -> Reporter<'a> {
        let plies = source.game.plies();
        let positions: Vec<&Chess> = plies.iter().map(|ply| &ply.position).collect();
        let is_drawn = source.result_text() == "1/2-1/2";
        let ending = source.game.forced_ending();
        Reporter {
            source,
            analysis,
            setting,
            phases: phases(positions.iter().copied()),
            positions,
            moves: source.moves(),
            ending: ending.or_else(|| source.game.ending().filter(|_| is_drawn)),
        }
    }

    fn side(&self, ply: usize) -> Color {
        self.positions[ply].turn()
    }

    fn is_end(&self, place: usize) -> bool {
        place + 1 == self.positions.len() && self.ending.is_some()
    }

    /// Returns the score of a position for its side to move. The final position of a finished game
    /// also has a score.
    fn evaluation(&self, place: usize) -> Option<Evaluation> {
        if self.is_end(place) {
            return Some(match self.ending {
                Some(Ending::Checkmate) => Evaluation::Mate(0),
                _ => Evaluation::Centipawns(0),
            });
        }
        let searched = self.analysis.searched[place].as_ref();
        searched.map(|searched| searched.evaluation)
    }

    /// Returns White's winning chances in a position.
    fn win(&self, place: usize) -> Option<f64> {
        let chances = self.evaluation(place)?.chances();
        Some(percent(self.side(place).fold_wb(chances, -chances)))
    }

    /// Returns the evaluation after a move, for the player who made it.
    fn after(&self, ply: usize) -> Option<Evaluation> {
        match self.evaluation(ply + 1)? {
            // The player has mated.
            Evaluation::Mate(0) => Some(Evaluation::Mate(1)),
            evaluation => Some(evaluation.reversed()),
        }
    }

    fn before(&self, ply: usize) -> Game {
        self.source.before(ply)
    }

    fn line(&self, place: usize) -> Vec<Move> {
        let searched = self.analysis.searched[place].as_ref();
        searched.map_or_else(Vec::new, |it| it.moves(&self.before(place)))
    }

    fn ply(&self, ply: usize, rating: u16) -> PlyReport {
        let (position, mv) = (self.positions[ply], self.moves[ply]);
        let after = self.after(ply);
        let best = self.line(ply);
        let is_best = best.first() == Some(&mv);
        let known = self
            .evaluation(ply)
            .filter(|_| !self.is_end(ply))
            .zip(after);
        let grading = match self.setting.judge {
            Some(_) => Grading::Judge,
            None => Grading::Own,
        };
        let judged = known.map(|(before, after)| Judged::of(before, after, is_best, grading));
        let shares = self.analysis.people[ply];
        let second = self.analysis.searched[ply]
            .as_ref()
            .and_then(|it| it.second);
        let is_only = || {
            let before = self.evaluation(ply).filter(|_| is_best);
            let share = shares.map(|shares| people::at(&shares.played, rating));
            let all = before.zip(second).zip(share);
            all.is_some_and(|((best, second), share)| is_only_move(best, second, share))
        };
        let bad = judged.as_ref().and_then(|judged| judged.mark);
        let mark = bad.or_else(|| is_only().then_some(Mark::Good));
        let is_bad = mark.is_some_and(Mark::is_bad);
        let reply = match is_bad {
            true => self.line(ply + 1),
            false => Vec::new(),
        };
        let reasons = match is_bad {
            true => self.reasons(ply, &best, &reply),
            false => Reasons::default(),
        };
        let words = shares.map_or_else(Vec::new, |shares| {
            let mut words = vec![people::in_words(&shares.played, rating, "this")];
            if let (true, Some(curve), Some(&best)) = (is_bad, &shares.best, best.first()) {
                words.push(people::in_words(curve, rating, &san(position, best)));
            }
            words
        });
        let white = |evaluation: Evaluation| match evaluation {
            Evaluation::Mate(0) => evaluation,
            _ => self.side(ply).fold_wb(evaluation, evaluation.reversed()),
        };
        PlyReport {
            ply: ply + 1,
            number: number(position),
            side: self.side(ply).into(),
            mv: move_report(&self.source.game, position, mv),
            fen: fen(self.positions[ply + 1]),
            phase: self.phases[ply],
            clock: self.source.clocks.get(ply).copied().flatten(),
            win: self.win(ply + 1),
            evaluation: after.filter(|_| !self.is_end(ply + 1)).map(white),
            loss: judged.as_ref().map(|judged| judged.loss),
            accuracy: judged.as_ref().map(|judged| judged.accuracy),
            mark,
            mate: judged.as_ref().and_then(|judged| judged.mate),
            best: self.line_report(ply, &best).filter(|_| !is_best),
            reply: self.line_report(ply + 1, &reply),
            second,
            shares,
            words,
            reasons,
        }
    }

    fn reasons(&self, ply: usize, best: &[Move], reply: &[Move]) -> Reasons {
        let [best, reply] = [(ply, best), (ply + 1, reply)].map(|(place, line)| {
            // No one can check a reason in moves that are not shown.
            &line[..self.shown(place, line)]
        });
        let mates = |place: usize| {
            let evaluation = self.evaluation(place);
            matches!(evaluation, Some(Evaluation::Mate(1..)))
        };
        let centipawns = |place: usize| match self.evaluation(place) {
            Some(Evaluation::Centipawns(centipawns)) => Some(centipawns),
            _ => None,
        };
        let moment = Moment {
            before: self.positions[ply],
            last: ply.checked_sub(1).map(|last| self.moves[last]),
            played: self.moves[ply],
            best: Variation {
                moves: best,
                mates: mates(ply),
                centipawns: centipawns(ply),
            },
            reply: Variation {
                moves: reply,
                mates: mates(ply + 1),
                centipawns: centipawns(ply + 1),
            },
            is_judged: self.setting.judge.is_some(),
        };
        moment.reasons()
    }

    /// Returns how many moves of a line from a position are shown.
    fn shown(&self, place: usize, line: &[Move]) -> usize {
        match self.evaluation(place) {
            Some(Evaluation::Mate(_)) => line.len(),
            _ => line.len().min(SHOWN),
        }
    }

    fn line_report(&self, place: usize, line: &[Move]) -> Option<LineReport> {
        let evaluation = self.evaluation(place).filter(|_| !line.is_empty())?;
        let side = self.side(place);
        let shown = self.shown(place, line);
        let mut position = self.positions[place].clone();
        let moves = line.iter().take(shown).map(|&mv| {
            let (number, mv_report) = (
                number(&position),
                move_report(&self.source.game, &position, mv),
            );
            position.play_unchecked(mv);
            LineMove {
                number,
                mv: mv_report,
                board: position.board().board_fen().to_string(),
            }
        });
        Some(LineReport {
            moves: moves.collect(),
            evaluation: side.fold_wb(evaluation, evaluation.reversed()),
        })
    }

    fn side_report(
        &self,
        side: Color,
        plies: &[PlyReport],
        (likelihood, moves): &(LogLikelihood, usize),
    ) -> SideReport {
        let own: Vec<&PlyReport> = plies.iter().filter(|ply| ply.side == side.into()).collect();
        let weights = self.weights();
        let accuracies = |phase: Option<Phase>| {
            let own = own
                .iter()
                .filter(|ply| phase.is_none_or(|phase| ply.phase == phase));
            let pairs = own.filter_map(|ply| Some((ply.accuracy?, weights[ply.ply - 1])));
            mean_accuracy(&pairs.collect::<Vec<_>>())
        };
        let count = |mark: Mark| own.iter().filter(|ply| ply.mark == Some(mark)).count();
        let mates = |event: MateEvent| own.iter().filter(|ply| ply.mate == Some(event)).count();
        SideReport {
            name: self.source.player(side).map(str::to_owned),
            rating: self.source.rating(side),
            moves: own.iter().filter(|ply| ply.loss.is_some()).count(),
            accuracy: accuracies(None),
            by_phase: Phase::ALL.map(|phase| accuracies(Some(phase))),
            blunders: count(Mark::Blunder),
            mistakes: count(Mark::Mistake),
            inaccuracies: count(Mark::Inaccuracy),
            good: count(Mark::Good),
            missed_mates: mates(MateEvent::Missed),
            allowed_mates: mates(MateEvent::Allowed),
            estimate: estimate(likelihood, *moves),
            log_likelihood: (*moves > 0).then_some(*likelihood),
        }
    }

    /// Returns the weight of each move, which depends on how the score swings around it; if some
    /// positions are unknown, all weights are equal.
    fn weights(&self) -> Vec<f64> {
        let percentages: Option<Vec<f64>> =
            (0..self.positions.len()).map(|it| self.win(it)).collect();
        percentages.map_or_else(|| vec![1.0; self.moves.len()], |it| weights(&it))
    }

    fn game_report(&self) -> GameReport {
        let opening = named_opening(&self.source.game);
        let mut warnings = remarks(self.source, self.setting);
        let is_open = |&place: &usize| self.evaluation(place).is_none();
        let open = (0..self.positions.len()).filter(is_open).count();
        if open > 0 {
            warnings.push(format!(
                "The review was stopped: {open} of {} positions were not searched.",
                self.positions.len()
            ));
        }
        let ending = self.ending.map(|ending| match ending {
            Ending::Checkmate => "checkmate",
            Ending::Stalemate => "stalemate",
            Ending::InsufficientMaterial => "draw by insufficient material",
            Ending::Repetition => "draw by repetition",
            Ending::FiftyMoves => "draw by the fifty-move rule",
        });
        GameReport {
            tags: self.source.tags.clone(),
            result: self.source.result_text().to_owned(),
            eco: opening.map(|(opening, _)| opening.eco.clone()),
            opening: opening.map(|(opening, _)| opening.name.clone()),
            book_plies: opening.map_or(0, |(_, plies)| plies),
            warnings,
            ending: ending.map(str::to_owned),
            draws: draws(&self.source.game, self.ending.is_some(), |place| {
                self.evaluation(place)
            }),
        }
    }
}

/// The quality of a move.
struct Judged {
    loss: f64,
    accuracy: f64,
    mark: Option<Mark>,
    mate: Option<MateEvent>,
}

impl Judged {
    /// Judges a move by the player's evaluations before and after it. The best move loses nothing;
    /// if the score falls nevertheless, the search before the move saw less than the search after
    /// it.
    fn of(before: Evaluation, after: Evaluation, is_best: bool, grading: Grading) -> Judged {
        if is_best {
            return Judged {
                loss: 0.0,
                accuracy: 100.0,
                mark: None,
                mate: None,
            };
        }
        let [from, to] = [before, after].map(|it| percent(it.chances()));
        Judged {
            loss: (from - to).max(0.0),
            accuracy: accuracy(from, to),
            mark: bad_mark(before, after, grading),
            mate: mate_event(before, after),
        }
    }
}

fn move_report(game: &Game, position: &Chess, mv: Move) -> MoveReport {
    let from = mv.from().unwrap_or(mv.to());
    let to = mv
        .castling_side()
        .map_or(mv.to(), |side| side.king_to(position.turn()));
    MoveReport {
        san: san(position, mv),
        uci: game.format_move(mv),
        from: from.to_string(),
        to: to.to_string(),
    }
}

#[cfg(test)]
mod tests;
