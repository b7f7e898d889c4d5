//! Options that several commands share.

use anyhow::Context;
use clap::Args;
use shakmaty::CastlingMode;
use std::path::PathBuf;
use std::sync::Arc;
use tessera::chess::Game;
use tessera::nn::{self, Backend, BackendKind, BackendOptions, DeviceChoice, Precision};

/// Which network is evaluated, and where.
#[derive(Args, Clone, Debug)]
pub struct NetworkArguments {
    /// The network's file; without it, the network built into the program
    #[arg(long, value_name = "FILE")]
    pub net: Option<PathBuf>,
    /// Where the network is computed: auto, cpu, cuda or, of several, cuda:1
    #[arg(long, default_value_t, value_name = "DEVICE")]
    pub device: DeviceChoice,
    /// The floating-point format it is computed in
    #[arg(long, value_enum, default_value_t)]
    pub precision: Precision,
}

impl NetworkArguments {
    /// The options of a backend that `threads` threads call at once.
    pub fn options(&self, kind: BackendKind, threads: usize, cache: usize) -> BackendOptions {
        BackendOptions {
            kind,
            net: self.net.clone(),
            device: self.device,
            precision: self.precision,
            threads,
            cache,
            seed: 0,
        }
    }

    /// Loads the backend.
    pub fn load(
        &self,
        kind: BackendKind,
        threads: usize,
        cache: usize,
    ) -> anyhow::Result<Arc<dyn Backend>> {
        Ok(nn::load(&self.options(kind, threads, cache))?)
    }
}

/// A position.
#[derive(Args, Clone, Debug)]
pub struct PositionArguments {
    /// The position; without it, the initial one
    #[arg(long, value_name = "FEN")]
    pub fen: Option<String>,
    /// Castle by the rules of Chess960; recognised from the FEN where only they allow it
    #[arg(long)]
    pub chess960: bool,
}

impl PositionArguments {
    /// The game that begins at the position.
    pub fn game(&self) -> anyhow::Result<Game> {
        let mode = if self.chess960 {
            CastlingMode::Chess960
        } else {
            CastlingMode::Standard
        };
        match &self.fen {
            Some(fen) => Game::from_fen(fen, mode).context("--fen"),
            None => Ok(Game::new(shakmaty::Chess::default(), mode)),
        }
    }
}
