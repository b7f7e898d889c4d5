//! Converts an engine's output for a position into its final lines.

use super::Line;
use super::info::Info;
use crate::chess::Game;
use shakmaty::{Move, Position};
use std::collections::BTreeMap;

/// An engine's latest output for a position.
#[derive(Default)]
pub(super) struct LatestInfo {
    /// The latest exact score for each rank.
    exact: BTreeMap<usize, Info>,
    /// The latest score for the first rank, even if it is only a bound.
    first: Option<Info>,
}

impl LatestInfo {
    pub(super) fn update(&mut self, info: Info) {
        if info.multipv == 1 {
            self.first = Some(info.clone());
        }
        if !info.is_bound {
            self.exact.insert(info.multipv, info);
        }
    }

    /// Returns the lines, starting with that of the chosen move; `None` if there is no score at
    /// all.
    ///
    /// Lines last reported at different depths may begin with the same move, in which case the one
    /// with the best rank counts.
    pub(super) fn lines(&self, game: &Game, best: Move) -> Option<Vec<Line>> {
        let mut lines: Vec<Line> = Vec::new();
        for info in self.exact.values() {
            if let Some(line) = line(game, info)
                && lines.iter().all(|other| other.moves[0] != line.moves[0])
            {
                lines.push(line);
            }
        }
        match lines.iter().position(|line| line.moves[0] == best) {
            Some(place) => lines[..=place].rotate_right(1),
            // An engine may change its choice at the end, or report no moves.
            None => {
                let first = self.first.as_ref()?;
                let told = line(game, first).filter(|line| line.moves[0] == best);
                let chosen = told.unwrap_or_else(|| Line {
                    score: first.score,
                    depth: first.depth,
                    moves: vec![best],
                });
                lines.insert(0, chosen);
            }
        }
        Some(lines)
    }
}

/// Returns the legal part of a line, or `None` if not even its first move is legal.
fn line(game: &Game, info: &Info) -> Option<Line> {
    let mut position = game.position().clone();
    let mut moves = Vec::with_capacity(info.pv.len());
    for mv in &info.pv {
        let Ok(mv) = mv.to_move(&position) else { break };
        position.play_unchecked(mv);
        moves.push(mv);
    }
    (!moves.is_empty()).then_some(Line {
        score: info.score,
        depth: info.depth,
        moves,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineScore;

    fn info(line: &str) -> Info {
        Info::parse(line).unwrap()
    }

    fn said(lines: &[&str]) -> LatestInfo {
        let mut said = LatestInfo::default();
        lines.iter().for_each(|line| said.update(info(line)));
        said
    }

    /// Returns the first moves and the scores of the lines.
    fn told(said: &LatestInfo, best: &str) -> Option<Vec<(String, EngineScore)>> {
        let game = Game::default();
        let lines = said.lines(&game, game.parse_move(best).unwrap())?;
        let told = |line: &Line| (game.format_move(line.moves[0]), line.score);
        Some(lines.iter().map(told).collect())
    }

    fn pairs(pairs: &[(&str, i32)]) -> Option<Vec<(String, EngineScore)>> {
        let pair = |&(mv, score): &(&str, i32)| (mv.to_owned(), EngineScore::Centipawns(score));
        Some(pairs.iter().map(pair).collect())
    }

    #[test]
    fn the_last_exact_lines_count_each_move_once() {
        let said = said(&[
            "info depth 7 multipv 1 score cp 42 pv d2d4 g8f6",
            "info depth 7 multipv 2 score cp 37 pv e2e4 c7c6",
            "info depth 7 multipv 3 score cp 26 pv c2c4 e7e5",
            "info depth 8 multipv 1 score cp 34 pv e2e4 c7c5 e4e4",
            "info depth 8 multipv 2 score cp 21 upperbound pv d2d4",
        ]);
        assert_eq!(told(&said, "e2e4"), pairs(&[("e2e4", 34), ("c2c4", 26)]));
        assert_eq!(told(&said, "c2c4"), pairs(&[("c2c4", 26), ("e2e4", 34)]));
        // The chosen move was not reported, so it gets the latest score.
        let changed = told(&said, "g1f3");
        assert_eq!(changed, pairs(&[("g1f3", 34), ("e2e4", 34), ("c2c4", 26)]));
        let game = Game::default();
        let best = game.parse_move("e2e4").unwrap();
        assert_eq!(said.lines(&game, best).unwrap()[0].moves.len(), 2);
    }

    #[test]
    fn a_bound_is_better_than_nothing() {
        let said = said(&["info depth 1 score cp 9 lowerbound pv e2e4"]);
        assert_eq!(told(&said, "e2e4"), pairs(&[("e2e4", 9)]));
        assert_eq!(told(&LatestInfo::default(), "e2e4"), None);
    }
}
