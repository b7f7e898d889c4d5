//! The engine's subcommands, one per file. Every measuring command accepts `--json` and then prints
//! one JSON object as its last line.

mod backendbench;
mod bench;
mod epd;
mod eval;
mod judge;
mod match_moves;
#[cfg(feature = "torch")]
mod networks;
mod options;
mod output;
mod perft;
mod players;
mod puzzles;
mod review;
#[cfg(feature = "serve")]
mod serve;

use clap::{CommandFactory, Parser, Subcommand};
#[cfg(feature = "torch")]
use networks::NetworkCommand;
use std::io::{BufReader, IsTerminal, stdin, stdout};
use tessera::command_line::Group;
use tessera::error_report::tell;
use tessera::manual::ManualCommand;
use tessera::uci::{self, Settings};

/// Printed if the program is started from a terminal, but not if a chess program starts it with a
/// pipe.
const GREETING: &str = concat!(
    "Tessera ",
    env!("CARGO_PKG_VERSION"),
    ". Waiting for UCI; `help`, or `tessera serve` for a board."
);

/// The commands, grouped as in the help.
pub const GROUPS: [Group; 3] = [
    (
        "Play and study",
        &["serve", "review", "eval", "explain", "generate"],
    ),
    (
        "Measure",
        &[
            "bench",
            "backendbench",
            "perft",
            "puzzles",
            "epd",
            "match-moves",
        ],
    ),
    (
        "Networks and installation",
        &[
            "doctor",
            "describe",
            "import",
            "export-lc0",
            "export-onnx",
            "completions",
        ],
    ),
];

/// A UCI chess engine whose whole search runs on Chessformer networks.
///
/// Without a command it speaks UCI on standard input and output.
#[derive(Parser)]
#[command(version = tessera::version::version())]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Review(Box<review::Arguments>),
    Bench(bench::Arguments),
    Perft(perft::Arguments),
    Backendbench(backendbench::Arguments),
    Puzzles(puzzles::Arguments),
    Epd(epd::Arguments),
    Eval(eval::Arguments),
    MatchMoves(match_moves::Arguments),
    #[cfg(feature = "serve")]
    Serve(Box<serve::Arguments>),
    #[cfg(feature = "torch")]
    #[command(flatten)]
    Networks(NetworkCommand),
    #[command(flatten)]
    Manual(ManualCommand),
}

impl Cli {
    /// Runs the command that was parsed.
    pub fn run(self) -> anyhow::Result<()> {
        match self.command {
            None => {
                if stdin().is_terminal() {
                    tell(GREETING);
                }
                let input = BufReader::new(stdin());
                Ok(uci::serve(input, stdout(), Settings::default())?)
            }
            Some(Command::Review(arguments)) => arguments.run(),
            Some(Command::Bench(arguments)) => arguments.run(),
            Some(Command::Perft(arguments)) => arguments.run(),
            Some(Command::Backendbench(arguments)) => arguments.run(),
            Some(Command::Puzzles(arguments)) => arguments.run(),
            Some(Command::Epd(arguments)) => arguments.run(),
            Some(Command::Eval(arguments)) => arguments.run(),
            Some(Command::MatchMoves(arguments)) => arguments.run(),
            #[cfg(feature = "serve")]
            Some(Command::Serve(arguments)) => arguments.run(),
            #[cfg(feature = "torch")]
            Some(Command::Networks(command)) => command.run(),
            Some(Command::Manual(command)) => Ok(command.run(Cli::command())?),
        }
    }
}
