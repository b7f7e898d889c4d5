//! The engine.

use std::io;

fn main() -> io::Result<()> {
    tessera::uci::serve(
        io::stdin().lock(),
        io::stdout(),
        tessera::uci::Settings::default(),
    )
}
