//! The subcommands of the engine, one a file. Every command that measures takes
//! `--json` and then prints one JSON object as its last line.

mod backendbench;
mod bench;
mod epd;
mod eval;
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
use std::io::{BufReader, IsTerminal, stdin, stdout};
use tessera::error_report::tell;
use tessera::manual;
use tessera::uci::{self, Settings};

/// For people who start the program by hand. A chess program, which speaks through a pipe,
/// never reads it.
const GREETING: &str = concat!(
    "Tessera ",
    env!("CARGO_PKG_VERSION"),
    ". Waiting for UCI; `help`, or `tessera serve` for a board."
);

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
    Networks(networks::Command),
    #[command(flatten)]
    Manual(manual::Command),
}

impl Cli {
    /// Does what the command line says.
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
