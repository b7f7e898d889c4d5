//! Options that several commands share.

use anyhow::Context;
use clap::Args;
use shakmaty::CastlingMode;
use std::path::PathBuf;
use tessera::agent::AgentKind;
use tessera::backend::{
    BackendKind, BackendOptions, CodeArguments, Devices, NetworkOptions, Precision,
};
use tessera::chess::Game;
use tessera::{player, uci};

/// Where networks are run.
#[derive(Args, Clone, Debug)]
pub struct PlaceArguments {
    #[command(flatten)]
    pub code: CodeArguments,
    /// Device that runs the network: auto, cpu, cuda, cuda:1 or several, as in cuda:0,cuda:1
    #[arg(long, default_value_t, value_name = "DEVICE")]
    pub device: Devices,
}

impl PlaceArguments {
    /// The options of a network in a format; `None` is the one built into the program.
    pub fn network(&self, net: Option<PathBuf>, precision: Precision) -> NetworkOptions {
        NetworkOptions {
            net,
            code: self.code.policy(),
            devices: self.device.clone(),
            precision,
            ..NetworkOptions::default()
        }
    }
}

/// How networks are run.
#[derive(Args, Clone, Debug)]
pub struct DeviceArguments {
    #[command(flatten)]
    pub place: PlaceArguments,
    /// Number format that the network runs in; `tessera doctor` says what auto is here, and why
    #[arg(long, value_enum, default_value_t)]
    pub precision: Precision,
}

impl DeviceArguments {
    /// The options of a network; `None` is the one built into the program.
    pub fn network(&self, net: Option<PathBuf>) -> NetworkOptions {
        self.place.network(net, self.precision)
    }
}

/// The network and the device that runs it.
#[derive(Args, Clone, Debug)]
pub struct NetworkArguments {
    /// The network's file; without it, the network built into the program
    #[arg(long, value_name = "FILE")]
    pub net: Option<PathBuf>,
    #[command(flatten)]
    pub on: DeviceArguments,
}

impl NetworkArguments {
    /// The options of a backend that `threads` threads call at once (0 leaves
    /// their number to the backend) and that remembers nothing.
    pub fn options(&self, kind: BackendKind, threads: usize) -> BackendOptions {
        BackendOptions {
            kind,
            network: self.on.network(self.net.clone()),
            threads,
            cache: 0,
            seed: 0,
        }
    }
}

/// How positions are searched.
#[derive(Args, Clone, Debug)]
pub struct SearchArguments {
    #[command(flatten)]
    pub network: NetworkArguments,
    /// Threads of a search
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// Set a UCI option, such as CPuct=2; may be repeated
    #[arg(long = "set", value_name = "OPTION=VALUE", value_parser = option)]
    options: Vec<(String, String)>,
}

fn option(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("write the option's name, `=` and its value")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl SearchArguments {
    /// The settings, for searches that have `hash` MiB unless set otherwise.
    pub fn settings(
        &self,
        agent: AgentKind,
        kind: BackendKind,
        hash: usize,
    ) -> anyhow::Result<player::Settings> {
        let threads = usize::from(self.threads);
        let mut settings = uci::Settings::default();
        settings.player.agent = agent;
        settings.player.backend = self.network.options(kind, threads);
        settings.player.set_threads(threads);
        settings.player.set_hash(hash);
        for (name, value) in &self.options {
            settings.set(name, value).context("--set")?;
        }
        Ok(settings.player)
    }
}

/// A position.
#[derive(Args, Clone, Debug)]
pub struct PositionArguments {
    /// The position; without it, the initial one
    #[arg(long, value_name = "FEN")]
    pub fen: Option<String>,
    /// Castle by the rules of Chess960; recognised from the FEN where only Chess960 allows it
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
