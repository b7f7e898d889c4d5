//! Review of a player's own game: the mistakes, the moves that players of a given rating choose
//! instead, and reasons.
//!
//! | part | contents |
//! |---|---|
//! | `source` | a game from a PGN, up to the first move that cannot be played |
//! | `analysis` | concurrent searches of a game's positions |
//! | `people`, `rating` | shares of players by rating; the rating that fits a player's moves |
//! | `cache` | analyses of games, kept between reviews |
//! | `curve`, `phase`, `marks`, `draws` | winning chances and accuracy, phases, marks, draws by rule |
//! | `facts` | reasons in sentences, each checked on the board |
//! | `judge`, `report` | the complete report |
//! | `summary` | a summary of several games |
//! | `text`, `page`, `annotated`, `puzzles` | a report as text, as a page, as PGN, as puzzles |

mod analysis;
mod annotated;
mod cache;
pub mod curve;
mod draws;
pub mod facts;
mod judge;
pub mod marks;
mod page;
pub mod people;
pub mod phase;
mod puzzles;
pub mod rating;
pub mod report;
mod source;
mod summary;
#[cfg(test)]
mod testing;
mod text;

pub use analysis::{Analyst, Found, Searched};
pub use annotated::annotated_pgn;
pub use cache::{Analysis, Cache};
pub use judge::{Setting, outline, report};
pub use page::{PARTS_MODULE, PARTS_STYLE, game_page, summary_page};
pub use puzzles::{COLUMNS, puzzles};
pub use report::Report;
pub use source::Source;
pub use summary::{Summary, summary};
pub use text::text;

use crate::backend::{Backend, BackendError};
use people::Shares;
use shakmaty::Position;

/// Asks the network what share of the players of each rating plays the move that was played, and
/// what share plays the best move, in each position of a game that `analysis` does not cover yet.
/// `go_on` is called before each move and can stop the loop early.
///
/// # Errors
/// [`BackendError`] if the network fails.
pub fn ask_people(
    backend: &dyn Backend,
    source: &Source,
    analysis: &mut Analysis,
    go_on: &mut dyn FnMut(usize) -> bool,
) -> Result<(), BackendError> {
    for (ply, mv) in source.moves().into_iter().enumerate() {
        if !go_on(ply) {
            break;
        }
        let before = source.before(ply);
        let best = analysis.searched[ply].as_ref();
        let best = best.and_then(|searched| searched.moves(&before).first().copied());
        let is_known = analysis.people[ply].is_some_and(|it| it.best.is_some() || best.is_none());
        if is_known || before.position().legal_moves().is_empty() {
            continue;
        }
        let moves: Vec<_> = [mv].into_iter().chain(best).collect();
        let curves = people::shares(backend, &before, &moves)?;
        analysis.people[ply] = Some(Shares {
            played: curves[0],
            best: curves.get(1).copied(),
        });
    }
    Ok(())
}
