//! Scores that a client sends with its games.

use super::{JudgedGames, JudgedPosition};
use crate::chess::Game;
use crate::review::curve::Evaluation;
use crate::review::{Searched, SentScores};
use crate::serve::problem::Problem;
use shakmaty::Position;

/// Maximum length of an engine's name.
const NAME: usize = 80;
/// Maximum absolute score, in centipawns and in moves to mate.
const HIGHEST: i32 = 100_000;
/// Maximum number of moves of a line.
const LINE: usize = 256;

impl JudgedGames {
    /// Returns the origin of the scores.
    pub(super) fn origin(&self) -> Result<SentScores, Problem> {
        let name = self.engine.trim();
        if name.is_empty() || name.chars().count() > NAME || name.contains(char::is_control) {
            let detail = format!("must be a name of 1 to {NAME} characters");
            return Err(Problem::field("judged.engine", detail));
        }
        if self.nodes == 0 {
            return Err(Problem::field("judged.nodes", "must be 1 or more"));
        }
        Ok(SentScores {
            engine: name.to_owned(),
            nodes: self.nodes,
        })
    }

    /// Checks the number of games.
    pub(super) fn check_games(&self, games: usize) -> Result<(), Problem> {
        if self.games.len() == games {
            return Ok(());
        }
        let detail = format!(
            "there are scores for {} games, but the PGN contains {games}",
            self.games.len()
        );
        Err(Problem::field("judged.games", detail))
    }

    /// Returns the scores of a game, which is the PGN's game of this index.
    pub(super) fn scores(
        &self,
        index: usize,
        game: &Game,
    ) -> Result<Vec<Option<Searched>>, Problem> {
        let (scores, plies) = (&self.games[index], game.plies());
        let field = format!("judged.games[{index}]");
        if scores.len() != plies.len() {
            let detail = format!(
                "there are {} scores, but the game has {} positions",
                scores.len(),
                plies.len()
            );
            return Err(Problem::field(field, detail));
        }
        let mut before = game.clone();
        let mut read = Vec::with_capacity(scores.len());
        for (place, score) in scores.iter().enumerate().rev() {
            before.truncate(place + 1);
            let field = format!("{field}[{place}]");
            let searched = score.as_ref().map(|score| score.read(&before, &field));
            read.push(searched.transpose()?);
        }
        read.reverse();
        Ok(read)
    }
}

impl JudgedPosition {
    fn read(&self, game: &Game, field: &str) -> Result<Searched, Problem> {
        let problem =
            |part: &str, detail: String| Problem::field(format!("{field}.{part}"), detail);
        check(self.evaluation).map_err(|detail| problem("evaluation", detail))?;
        if let Some(second) = self.second {
            check(second).map_err(|detail| problem("second", detail))?;
        }
        if !(1..=LINE).contains(&self.line.len()) {
            let detail = match game.position().legal_moves().is_empty() {
                true => "the position has no legal move: send null instead of a score".to_owned(),
                false => format!("must have 1 to {LINE} moves"),
            };
            return Err(problem("line", detail));
        }
        let mut after = game.clone();
        let mut line = Vec::with_capacity(self.line.len());
        for (number, text) in self.line.iter().enumerate() {
            let mv = after
                .parse_move(text)
                .map_err(|error| problem(&format!("line[{number}]"), error.to_string()))?;
            line.push(after.format_move(mv));
            after.play(mv);
        }
        Ok(Searched {
            line,
            evaluation: self.evaluation,
            second: self.second,
        })
    }
}

fn check(evaluation: Evaluation) -> Result<(), String> {
    let (Evaluation::Centipawns(number) | Evaluation::Mate(number)) = evaluation;
    match evaluation {
        Evaluation::Mate(0) => Err("a mate takes 1 move or more".to_owned()),
        _ if !(-HIGHEST..=HIGHEST).contains(&number) => Err(format!("must be within ±{HIGHEST}")),
        _ => Ok(()),
    }
}
