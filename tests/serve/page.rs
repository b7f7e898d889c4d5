//! Tests the page in a browser, using it as a person would.

mod analysis;
mod board;
mod game;
mod kept;
mod language;
mod layout;
mod pasted;
mod whole;

use super::Server;
use super::browser::Browser;

/// Opens the page of a server; returns `None` if it cannot be shown.
pub(super) fn open(server: &Server, part: &str) -> Option<Browser> {
    if server.get("/").body.contains("built without the board") {
        crate::skip::skip("the board of the page (tools/setup fetches it by npm)");
        return None;
    }
    Browser::open(&format!("http://{}/#{part}", server.address))
}

/// Returns an expression that is true if an element's text contains `text`.
fn contains(selector: &str, text: &str) -> String {
    format!("document.querySelector('{selector}')?.textContent.includes({text:?})")
}

/// Returns an expression for the number of matching elements.
fn count(selector: &str) -> String {
    format!("document.querySelectorAll('{selector}').length")
}

impl Browser {
    /// Plays a move with two clicks on a board in White's orientation.
    fn play(&mut self, board: &str, from: &str, to: &str) {
        self.click_square(board, from);
        self.click_square(board, to);
    }

    /// Types a move.
    pub(super) fn type_move(&mut self, part: &str, text: &str) {
        self.fill(&format!("#{part}-typed-move"), text);
        self.click(&format!("#{part}-typed button"));
    }

    /// Loads a FEN or a PGN into the analysis.
    fn load(&mut self, text: &str) {
        self.fill("#analyse-form [name=text]", text);
        self.click("#analyse-form .main");
    }

    /// Selects a radio button by its value.
    fn choose(&mut self, form: &str, value: &str) {
        self.click(&format!("{form} [value=\"{value}\"] + span"));
    }
}
