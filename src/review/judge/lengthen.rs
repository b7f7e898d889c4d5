//! The lines of bad moves, which give the reasons, are continued from their ends if the hash table
//! has cut them short.

use super::{LINE, SECOND, Task, loss};
use crate::engine::EngineError;
use crate::review::analysis::Searched;
use crate::review::curve::Evaluation;
use shakmaty::Position;

/// Losses of winning chances, in −1…1, from which a move may have reasons.
const BAD: f64 = 0.1;
/// Lines with fewer moves than this are continued, …
const ENOUGH: usize = 12;
/// … by at most this many searches.
const SEARCHES: usize = 4;

impl Task<'_> {
    /// Continues the short lines before and after bad moves, with part of the nodes for a position.
    pub(super) fn lengthen(&self, nodes: u64) -> Result<(), EngineError> {
        self.share(short(self), |engine, (place, mut searched), goes_on| {
            engine.new_game()?;
            let mut game = self.game.clone();
            game.truncate(place + 1);
            let moves = searched.moves(&game);
            moves.into_iter().for_each(|mv| game.play(mv));
            for _ in 0..SEARCHES {
                if !goes_on() {
                    return Ok(());
                }
                let is_over = game.position().legal_moves().is_empty();
                if is_over || !is_short(&game, &searched) {
                    break;
                }
                let rest = self.judge.search(engine, &game, nodes / SECOND)?;
                let moves = rest.moves(&game);
                moves.into_iter().for_each(|mv| game.play(mv));
                searched.line.extend(rest.line);
            }
            if let Evaluation::Centipawns(_) = searched.evaluation {
                searched.line.truncate(LINE);
            }
            self.found.lock()[place] = Some(searched);
            Ok(())
        })
    }
}

/// Returns whether a line that leads to the end of a game has too few moves.
fn is_short(end: &crate::chess::Game, searched: &Searched) -> bool {
    match searched.evaluation {
        Evaluation::Mate(_) => !end.position().is_checkmate(),
        Evaluation::Centipawns(_) => searched.line.len() < ENOUGH,
    }
}

/// Returns the positions before and after bad moves whose lines are short.
fn short(task: &Task<'_>) -> Vec<(usize, Searched)> {
    let found = task.found.lock();
    let is_bad = |ply: usize| loss(task.game, &found, ply) >= Some(BAD);
    let places = (0..found.len()).filter_map(|place| {
        let is_after = place.checked_sub(1).is_some_and(is_bad);
        let searched = found[place].clone().filter(|_| is_after || is_bad(place))?;
        let mut end = task.game.clone();
        end.truncate(place + 1);
        let moves = searched.moves(&end);
        moves.into_iter().for_each(|mv| end.play(mv));
        is_short(&end, &searched).then_some((place, searched))
    });
    places.collect()
}
