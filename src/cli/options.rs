//! Options that several commands share.

use anyhow::{Context, bail};
use clap::Args;
use shakmaty::CastlingMode;
use tessera::agent::AgentKind;
use tessera::backend::BackendKind;
use tessera::chess::Game;
use tessera::command_line::{NetworkArguments, name_and_value};
use tessera::player::PlayerSettings;
use tessera::uci;

/// Search settings.
#[derive(Args, Clone, Debug)]
pub struct SearchArguments {
    #[command(flatten)]
    pub network: NetworkArguments,
    /// Search threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// Set a UCI option, such as CPuct=2; may be repeated
    #[arg(long = "set", value_name = "OPTION=VALUE", value_parser = name_and_value)]
    options: Vec<(String, String)>,
}

impl SearchArguments {
    /// Returns the settings. `hash` is the default memory for searches in MiB.
    pub fn settings(
        &self,
        agent: AgentKind,
        kind: BackendKind,
        hash: usize,
    ) -> anyhow::Result<PlayerSettings> {
        let threads = usize::from(self.threads);
        let mut settings = uci::Settings::default();
        settings.player.agent = agent;
        settings.player.backend = self.network.options(kind, threads);
        settings.player.set_threads(threads);
        settings.player.set_hash(hash);
        for (name, value) in &self.options {
            settings.set(name, value).context("--set")?;
        }
        if let Some(problem) = settings.player.options.search.tablebase.problem() {
            bail!("--set: {problem}");
        }
        Ok(settings.player)
    }
}

/// A position.
#[derive(Args, Clone, Debug)]
pub struct PositionArguments {
    /// The position; by default the initial position
    #[arg(long, value_name = "FEN")]
    pub fen: Option<String>,
    /// Castle by the rules of Chess960; detected automatically if the FEN is legal only in Chess960
    #[arg(long)]
    pub chess960: bool,
    /// Moves played from that position, in UCI notation or SAN, separated by commas or spaces, such
    /// as e4,c5 or "1. e4 c5"; networks read them as history
    #[arg(long, value_name = "MOVES", value_delimiter = ',')]
    pub moves: Vec<String>,
}

impl PositionArguments {
    /// Returns the game so far.
    pub fn game(&self) -> anyhow::Result<Game> {
        let mode = if self.chess960 {
            CastlingMode::Chess960
        } else {
            CastlingMode::Standard
        };
        let mut game = match &self.fen {
            Some(fen) => Game::from_fen(fen, mode).context("--fen")?,
            None => Game::new(shakmaty::Chess::default(), mode),
        };
        for moves in &self.moves {
            play(&mut game, moves)?;
        }
        Ok(game)
    }
}

/// Plays `moves`, given in UCI notation or SAN, with or without PGN move numbers.
pub fn play(game: &mut Game, moves: &str) -> anyhow::Result<()> {
    for word in moves.split_whitespace() {
        let number = word
            .find(|it: char| !it.is_ascii_digit())
            .unwrap_or(word.len());
        let mv = match word[number..].starts_with('.') {
            true => word[number..].trim_start_matches('.'),
            false => word,
        };
        if !mv.is_empty() {
            game.play(game.read_move(mv).context("--moves")?);
        }
    }
    Ok(())
}
