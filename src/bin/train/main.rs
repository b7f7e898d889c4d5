//! `train` turns games into networks.

// Which panics where its output is closed.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod ablate;
mod console;
mod copies;
mod cycle;
mod describe;
mod device;
mod eval;
mod export;
mod games;
mod imagine;
mod label;
mod merge;
mod pack;
mod policies;
mod report;
mod run;
mod scheduling;
mod selfplay;
mod source;
mod stats;
mod transcoder;
mod vocabulary;
mod worker;

use clap::{CommandFactory, Parser, Subcommand};
use mimalloc::MiMalloc;
use std::process::ExitCode;
use tessera::{error_report, manual};
use worker::Searcher;

/// Keeps this program's small, long-lived allocations out of glibc's heap, where
/// libtorch allocates activations of tens of megabytes. Mixed in one heap they
/// fragment it: resident memory grows without end.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The trainer of Tessera: games in, networks out.
#[derive(Parser)]
#[command(name = "train", version = tessera::version::version())]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Pack games (PGN, also gzip or zstd) or chunks into a shard for training.
    Pack(pack::Pack),
    /// Count what shards, chunks and games consist of.
    Stats(stats::Stats),
    /// Print the moves of games in standard algebraic notation, as the vocabulary of a
    /// network over moves.
    Vocabulary(vocabulary::VocabularyCommand),
    /// Label with a UCI engine: games it plays, existing games and positions, or
    /// games sampled from networks.
    Label(label::Label),
    /// Play games of the engine against itself.
    Selfplay(selfplay::SelfPlayCommand),
    /// Close the loop: self-play, reanalysis, training and the gate, all on this machine.
    Loop(cycle::Loop),
    /// A worker of a loop: play games with the newest network.
    Actor(worker::Searching),
    /// A worker of a loop: search positions of earlier games with the newest network.
    Reanalyser(worker::Searching),
    /// The worker of a loop that trains.
    Learner(worker::LearnerCommand),
    /// The worker of a loop that lets networks pass by a match.
    Gate(worker::Searching),
    /// Print the size of an architecture.
    Describe(describe::Describe),
    /// Train a network, or resume training it.
    Run(run::Run),
    /// Evaluate a run's network on the validation games.
    Eval(eval::Eval),
    /// Count how far games follow those of the data move by move.
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
    #[command(flatten)]
    Manual(manual::Command),
}

fn main() -> ExitCode {
    console::show_warnings();
    let outcome = match Arguments::parse().command {
        Command::Pack(pack) => pack.run(),
        Command::Stats(stats) => stats.run(),
        Command::Vocabulary(vocabulary) => vocabulary.run(),
        Command::Label(label) => label.run(),
        Command::Selfplay(selfplay) => selfplay.run(),
        Command::Loop(all) => all.run(),
        Command::Actor(it) => return worker::end(it.run(Searcher::Actor)),
        Command::Reanalyser(it) => return worker::end(it.run(Searcher::Reanalyser)),
        Command::Learner(it) => return worker::end(it.run()),
        Command::Gate(it) => return worker::end(it.run(Searcher::Gate)),
        Command::Describe(describe) => describe.run(),
        Command::Run(run) => run.run(),
        Command::Eval(eval) => eval.run(),
        Command::Copies(copies) => copies.run(),
        Command::Imagine(imagine) => imagine.run(),
        Command::Export(export) => export.run(),
        Command::Merge(merge) => merge.run(),
        Command::Report(report) => report.run(),
        Command::Ablate(ablate) => ablate.run(),
        Command::Transcoder(transcoder) => transcoder.run(),
        Command::Manual(command) => command.run(Arguments::command()).map_err(Into::into),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error_report::report(error.as_ref()),
    }
}
