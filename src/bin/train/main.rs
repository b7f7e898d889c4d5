//! `train` turns games into networks.

mod pack;
mod stats;

use clap::{Parser, Subcommand};

/// The trainer of Tessera: games in, networks out.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Pack games (PGN, also gzip or zstd) into a shard for training.
    Pack(pack::Pack),
    /// Say what training data consists of.
    Stats(stats::Stats),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Pack(pack) => pack.run(),
        Command::Stats(stats) => stats.run(),
    }
}
