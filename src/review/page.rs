//! Reviews as pages that a browser can open from the disk: one for a single game and one for
//! several games.

use super::report::Report;
use super::summary::Summary;
use crate::page::Page;
use serde_json::json;

const PIECES: &str = include_str!("../explain/pieces.svg");
const BOARD: &str = include_str!("../explain/board.css");

/// The parts of a game's page that other pages also show, as a JavaScript module.
pub const PARTS_MODULE: &str = concat!(
    include_str!("../page/elements.js"),
    include_str!("page/parts.js"),
    include_str!("page/exports.js"),
);
/// The style of these parts, which applies within elements of the class `review`.
pub const PARTS_STYLE: &str = include_str!("page/parts.css");

/// Returns the page of a game.
pub fn game_page(report: &Report) -> String {
    let name = |name: &Option<String>, side: &str| name.clone().unwrap_or(side.to_owned());
    let white = name(&report.white.name, "White");
    let black = name(&report.black.name, "Black");
    let page = Page {
        title: &format!("{white} – {black}, reviewed"),
        body: &include_str!("page/game.html").replace("{{pieces}}", PIECES),
        style: &format!("{BOARD}{PARTS_STYLE}{}", include_str!("page/game.css")),
        script: concat!(include_str!("page/parts.js"), include_str!("page/game.js")),
    };
    page.render(&json!(report))
}

/// Returns the page of several games, which links to their pages.
pub fn summary_page(summary: &Summary) -> String {
    let title = match &summary.player {
        Some(player) => format!("Games of {player}, reviewed"),
        None => format!("{} games, reviewed", summary.games.len()),
    };
    let page = Page {
        title: &title,
        body: include_str!("page/summary.html"),
        style: include_str!("page/summary.css"),
        script: include_str!("page/summary.js"),
    };
    page.render(&json!(summary))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::assert_self_contained;
    use crate::review::summary;
    use crate::review::testing::fools_mate;

    #[test]
    fn pages_are_whole() {
        let (_, report) = fools_mate();
        assert_self_contained(&game_page(&report));
        let games = [(Some("1.html".to_owned()), report)];
        assert_self_contained(&summary_page(&summary(None, &games, Vec::new())));
    }
}
