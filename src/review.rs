//! Review of a player's own game: the mistakes, the moves that players of a given rating choose
//! instead, and reasons.
//!
//! | part | contents |
//! |---|---|
//! | `source` | a game from a PGN, up to the first move that cannot be played |
//! | `analysis` | concurrent searches of a game's positions |
//! | `people`, `rating` | shares of players by rating; the rating that fits a player's moves |
//! | `judge` | an external UCI engine that scores a game's positions |
//! | `key`, `cache` | everything that results depend on; results kept between reviews |
//! | `curve`, `phase`, `marks`, `draws` | winning chances and accuracy, phases, marks, draws by rule |
//! | `facts` | reasons in sentences, each checked on the board |
//! | `reporter`, `report` | the complete report |
//! | `session` | scores, people's moves and stored results together: the review of a game |
//! | `summary` | a summary of several games |
//! | `text`, `page`, `annotated`, `puzzles` | a report as text, as a page, as PGN, as puzzles |

mod analysis;
mod annotated;
mod cache;
pub mod curve;
mod draws;
pub mod facts;
mod judge;
mod key;
pub mod marks;
mod page;
pub mod people;
pub mod phase;
mod puzzles;
pub mod rating;
pub mod report;
mod reporter;
mod session;
mod source;
mod summary;
#[cfg(test)]
#[path = "review/tests/testing.rs"]
mod testing;
mod text;

pub use analysis::Searched;
pub use annotated::annotated_pgn;
pub use cache::{Analysis, Cache, Recent};
pub use judge::{JUDGE_NODES, Judge, USUAL_JUDGE};
pub use key::NetworkIdentity;
pub use page::{PARTS_MODULE, PARTS_STYLE, game_page, summary_page};
pub use puzzles::{COLUMNS, puzzles};
pub use report::Report;
pub use reporter::unscored;
pub use session::{
    LoadedNetwork, News, OwnSearch, ReviewError, ScoredPosition, SentScores, Session,
};
pub use source::{Source, no_game_of};
pub use summary::{Summary, summary};
pub use text::text;
