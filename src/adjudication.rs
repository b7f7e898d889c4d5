//! Adjudication: ending games before the rules of chess do.

use crate::chess::{Ending, Game};
use crate::data::sample::Wdl;
use crate::tablebase::{Tablebase, Verdict};
use shakmaty::{Color, Position};

/// A rule by which a side resigns after several consecutive bad scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResignRule {
    /// Number of consecutive moves of this side.
    pub moves: usize,
    /// The rule applies if at each of these moves the side's score was at most minus this many
    /// centipawns.
    pub centipawns: i32,
}

/// A rule by which a game is drawn after several consecutive scores near 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawRule {
    /// The first move at which this rule may end a game.
    pub from: usize,
    /// Number of consecutive moves by each side.
    pub moves: usize,
    /// The rule applies if at each of these moves the score was within this many centipawns of 0.
    pub centipawns: i32,
}

/// The rules that end games, in addition to those of chess.
#[derive(Clone, Debug, Default)]
pub struct Adjudication {
    /// The rule for resignations.
    pub resign: Option<ResignRule>,
    /// The rule for draws.
    pub draw: Option<DrawRule>,
    /// Number of plies, including the opening, after which a game is stopped without a result.
    pub max_plies: Option<usize>,
    /// Tablebases; a game ends when they cover its position.
    pub tablebase: Tablebase,
}

/// How a game ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GameEnd {
    /// With this result for White.
    Decided(Wdl),
    /// Without a result, because it has become too long.
    Stopped,
}

impl GameEnd {
    /// Returns the result for White, if the game has one.
    pub fn result(self) -> Option<Wdl> {
        match self {
            GameEnd::Decided(result) => Some(result),
            GameEnd::Stopped => None,
        }
    }
}

impl Adjudication {
    /// Returns the rules in words.
    pub(crate) fn rules(&self) -> Vec<String> {
        let resign = self.resign;
        let resign = resign.map(|rule| format!("resign {},{}", rule.moves, rule.centipawns));
        let draw = self.draw;
        let draw =
            draw.map(|rule| format!("draw {},{},{}", rule.from, rule.moves, rule.centipawns));
        let plies = self.max_plies.map(|plies| format!("at most {plies} plies"));
        let has_tables = !self.tablebase.path().is_empty();
        let pieces = || self.tablebase.inventory().pieces;
        let tables = has_tables.then(|| format!("{} men tablebases", pieces()));
        [resign, draw, plies, tables]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Returns how the game ended, or `None` if it has not. `scores` are the scores of the positions
    /// before the latest moves, in centipawns from White's perspective.
    pub(crate) fn verdict(&self, game: &Game, scores: &[i32]) -> Option<GameEnd> {
        if let Some(result) = result(game).or_else(|| known(&self.tablebase, game)) {
            return Some(GameEnd::Decided(result));
        }
        let plies = game.plies().len() - 1;
        let mover = !game.position().turn();
        let for_mover = |&score: &i32| mover.fold_wb(score, -score);
        if let Some(rule) = self.resign
            && scores.len() + 1 >= 2 * rule.moves
        {
            let own = scores.iter().rev().step_by(2).take(rule.moves);
            if own.map(for_mover).all(|score| score <= -rule.centipawns) {
                return Some(GameEnd::Decided(won_by(!mover)));
            }
        }
        if let Some(rule) = self.draw {
            let number = game.position().fullmoves().get() as usize;
            let latest = scores.iter().rev().take(2 * rule.moves);
            let is_long = scores.len() >= 2 * rule.moves && number >= rule.from;
            if is_long
                && latest
                    .into_iter()
                    .all(|score| score.abs() <= rule.centipawns)
            {
                return Some(GameEnd::Decided(Wdl::Draw));
            }
        }
        let is_long = self.max_plies.is_some_and(|most| plies >= most);
        is_long.then_some(GameEnd::Stopped)
    }
}

fn won_by(winner: Color) -> Wdl {
    winner.fold_wb(Wdl::Win, Wdl::Loss)
}

/// Returns the result for White if the game is over under the rules of chess.
pub(crate) fn result(game: &Game) -> Option<Wdl> {
    Some(match game.ending()? {
        Ending::Checkmate => won_by(!game.position().turn()),
        _ => Wdl::Draw,
    })
}

/// Returns the result for White according to the tablebases, if they cover the position.
pub(crate) fn known(tablebase: &Tablebase, game: &Game) -> Option<Wdl> {
    let position = game.position();
    Some(match tablebase.probe(position)? {
        Verdict::Win => won_by(position.turn()),
        Verdict::Draw => Wdl::Draw,
        Verdict::Loss => won_by(!position.turn()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakmaty::CastlingMode;

    fn played(moves: &str) -> Game {
        let mut game = Game::default();
        for mv in moves.split_whitespace() {
            game.play(game.parse_move(mv).unwrap());
        }
        game
    }

    #[test]
    fn a_side_resigns_after_enough_bad_moves_of_its_own() {
        let rules = Adjudication {
            resign: Some(ResignRule {
                moves: 2,
                centipawns: 500,
            }),
            ..Adjudication::default()
        };
        // White moved last.
        let game = played("e2e4 e7e5 g1f3");
        for (scores, expected) in [
            (&[-600, 0, -500][..], Some(GameEnd::Decided(Wdl::Loss))),
            (&[-600, -600, -499], None),
            (&[-600], None),
            (&[600, 600, 600], None),
        ] {
            assert_eq!(rules.verdict(&game, scores), expected, "{scores:?}");
        }
        let game = played("e2e4 e7e5 g1f3 b8c6");
        let verdict = rules.verdict(&game, &[0, 700, 0, 800]);
        assert_eq!(verdict, Some(GameEnd::Decided(Wdl::Win)));
    }

    #[test]
    fn even_games_are_drawn_late_and_long_ones_broken_off() {
        let rules = Adjudication {
            draw: Some(DrawRule {
                from: 3,
                moves: 1,
                centipawns: 10,
            }),
            max_plies: Some(5),
            ..Adjudication::default()
        };
        let early = played("e2e4 e7e5");
        assert_eq!(rules.verdict(&early, &[0, 0]), None);
        let late = played("e2e4 e7e5 g1f3 b8c6");
        assert_eq!(
            rules.verdict(&late, &[90, 90, 5, -9]),
            Some(GameEnd::Decided(Wdl::Draw))
        );
        assert_eq!(rules.verdict(&late, &[0, 0, 11, 0]), None);
        let longest = played("e2e4 e7e5 g1f3 b8c6 f1b5");
        assert_eq!(rules.verdict(&longest, &[90; 5]), Some(GameEnd::Stopped));
    }

    #[test]
    fn the_rules_of_chess_come_first() {
        let rules = Adjudication::default();
        let mate = played("f2f3 e7e5 g2g4 d8h4");
        assert_eq!(rules.verdict(&mate, &[]), Some(GameEnd::Decided(Wdl::Loss)));
        let bare = Game::from_fen("7k/8/8/8/8/8/8/K7 w - - 0 1", CastlingMode::Standard);
        assert_eq!(
            rules.verdict(&bare.unwrap(), &[]),
            Some(GameEnd::Decided(Wdl::Draw))
        );
    }
}
