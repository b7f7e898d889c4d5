//! `tessera-train` turns games into networks.

// These macros panic if the output is closed.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod ablate;
mod ablate_heads;
mod console;
mod copies;
mod cycle;
mod device;
mod export;
mod games;
mod imagine;
mod label;
mod lens;
mod merge;
mod pack;
mod policies;
mod report;
mod run;
mod samples;
mod scheduling;
mod selfplay;
mod size;
mod source;
mod stats;
mod transcoder;
mod validate;
mod vocabulary;
mod worker;

use clap::{CommandFactory, Parser, Subcommand};
use mimalloc::MiMalloc;
use tessera::command_line::{Group, parse};
use tessera::error_report;
use tessera::exit::{SUCCESS, exit};
use tessera::manual::ManualCommand;
use worker::Searcher;

/// Keeps this program's small, long-lived allocations out of glibc's heap, where libtorch allocates
/// activations of tens of megabytes. Mixing both in one heap fragments it, and resident memory
/// grows without limit.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The commands, grouped as in the help.
const GROUPS: [Group; 4] = [
    (
        "Data",
        &["label", "selfplay", "pack", "stats", "vocabulary", "copies"],
    ),
    (
        "Training",
        &[
            "run",
            "size",
            "export",
            "merge",
            "ablate",
            "transcoder",
            "lens",
        ],
    ),
    (
        "Loop",
        &["loop", "actor", "reanalyser", "learner", "gate", "gauntlet"],
    ),
    (
        "Measuring",
        &["validate", "imagine", "report", "ablate-heads"],
    ),
];

/// Tessera's trainer: games in, networks out.
#[derive(Parser)]
#[command(name = "tessera-train", version = tessera::version::version())]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Pack games (PGN, also gzip or zstd) or chunks into a shard for training.
    Pack(pack::Pack),
    /// Print statistics of shards, chunks and games.
    Stats(stats::Stats),
    /// Print all moves of a shard's games in standard algebraic notation, as the vocabulary of a
    /// move-token model.
    Vocabulary(vocabulary::VocabularyCommand),
    /// Label games and positions with a UCI engine: existing ones, games that it plays itself, or
    /// games sampled from networks.
    Label(label::Label),
    /// Let the engine play games against itself.
    Selfplay(selfplay::SelfPlayCommand),
    /// Run a whole loop on this machine: self-play, reanalysis, training and the gate.
    Loop(cycle::Loop),
    /// Run a loop worker that plays games with the newest network.
    Actor(worker::Searching),
    /// Run a loop worker that searches positions of earlier games with the newest network.
    Reanalyser(worker::Searching),
    /// Run the loop worker that trains the network.
    Learner(worker::LearnerCommand),
    /// Run the loop worker that accepts or rejects new networks by a match.
    Gate(worker::Searching),
    /// Run the loop worker that measures new networks in games against the first and the previous one.
    Gauntlet(worker::Searching),
    /// Print the size of an architecture.
    Size(size::Size),
    /// Train a network, or resume training it.
    Run(run::Run),
    /// Evaluate a run's network on the validation games.
    Validate(validate::Validate),
    /// Count how many games repeat the data's games move by move, and how far.
    Copies(copies::CopiesCommand),
    /// Measure how well a network imagines the future.
    Imagine(imagine::Imagine),
    /// Export a run's network as the TorchScript file that the engine loads.
    Export(export::Export),
    /// Average the weights of several networks into one.
    Merge(merge::Merge),
    /// Write an HTML page that compares runs.
    Report(report::Report),
    /// Train variants of one configuration and compare them.
    Ablate(ablate::Ablate),
    /// Fit sparse features to a layer of a network, for `tessera explain`.
    Transcoder(transcoder::Transcoder),
    /// Fit maps through which `tessera explain` reads a network's outputs after each layer.
    Lens(lens::LensCommand),
    /// Measure the effect of each attention head, by evaluating positions without it.
    AblateHeads(ablate_heads::AblateHeads),
    #[command(flatten)]
    Manual(ManualCommand),
}

fn main() -> ! {
    console::show_warnings();
    exit(status(parse::<Arguments>(&GROUPS).command))
}

/// Runs a command, reports its error, if any, and returns the exit status.
fn status(command: Command) -> i32 {
    let outcome = match command {
        Command::Pack(pack) => pack.run(),
        Command::Stats(stats) => stats.run(),
        Command::Vocabulary(vocabulary) => vocabulary.run(),
        Command::Label(label) => label.run(),
        Command::Selfplay(selfplay) => selfplay.run(),
        Command::Loop(all) => return reported(all.run()),
        Command::Actor(it) => return worker::end(it.run(Searcher::Actor)),
        Command::Reanalyser(it) => return worker::end(it.run(Searcher::Reanalyser)),
        Command::Learner(it) => return worker::end(it.run()),
        Command::Gate(it) => return worker::end(it.run(Searcher::Gate)),
        Command::Gauntlet(it) => return worker::end(it.run(Searcher::Gauntlet)),
        Command::Size(size) => size.run(),
        Command::Run(run) => return reported(run.run()),
        Command::Validate(validate) => validate.run(),
        Command::Copies(copies) => copies.run(),
        Command::Imagine(imagine) => imagine.run(),
        Command::Export(export) => export.run(),
        Command::Merge(merge) => merge.run(),
        Command::Report(report) => report.run(),
        Command::Ablate(ablate) => ablate.run(),
        Command::Transcoder(transcoder) => transcoder.run(),
        Command::Lens(lens) => lens.run(),
        Command::AblateHeads(it) => it.run(),
        Command::Manual(command) => command.run(Arguments::command()).map_err(Into::into),
    };
    reported(outcome.map(|()| SUCCESS))
}

/// Reports a command's error, if any, and returns the exit status.
fn reported(outcome: anyhow::Result<i32>) -> i32 {
    outcome.unwrap_or_else(|error| error_report::report(error.as_ref()))
}
