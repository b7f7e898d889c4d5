//! What a user can set, typed.

use crate::agent::AgentKind;
use crate::chess::Ratings;
use crate::nn::BackendOptions;
use crate::search::Parameters;
use shakmaty::Color;
use std::path::PathBuf;

/// `Hash` unless set, in MiB.
const DEFAULT_HASH: usize = 256;

/// `SelfElo` and `OppoElo` unless set, as in Maia-3.
const DEFAULT_ELO: u16 = 1500;

/// Everything the options of a session set.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Which backend evaluates, with which network.
    pub backend: BackendOptions,
    /// Which player chooses.
    pub agent: AgentKind,
    /// What steers the search.
    pub parameters: Parameters,
    /// The rating that the engine plays as, with networks that ask for one.
    pub self_elo: u16,
    /// The rating that its opponent has for such networks.
    pub opponent_elo: u16,
    /// Whether `bestmove` names the reply to ponder on.
    pub ponder: bool,
    /// Whether castling is written as king takes rook.
    pub chess960: bool,
    /// Whether scores come with the probabilities of win, draw and loss.
    pub show_wdl: bool,
    /// Whether scores come with the expected length of the game.
    pub show_moves_left: bool,
    /// Whether to analyse: to think to the end, and to keep the search tree
    /// through `ucinewgame`.
    pub analyse_mode: bool,
    /// Whether every root move is reported in numbers before `bestmove`.
    pub verbose_move_stats: bool,
    /// Where all that is said is written down.
    pub log_file: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Settings {
        let mut settings = Settings {
            backend: BackendOptions::default(),
            agent: AgentKind::default(),
            parameters: Parameters::default(),
            self_elo: DEFAULT_ELO,
            opponent_elo: DEFAULT_ELO,
            ponder: true,
            chess960: false,
            show_wdl: false,
            show_moves_left: false,
            analyse_mode: false,
            verbose_move_stats: false,
            log_file: None,
        };
        settings.set_hash(DEFAULT_HASH);
        settings
    }
}

impl Settings {
    /// What steers the search in the mode that is set.
    #[must_use]
    pub fn search_parameters(&self) -> Parameters {
        let mut parameters = self.parameters.clone();
        if self.analyse_mode {
            parameters.smart_pruning = 0.0;
        }
        parameters
    }

    /// The players' ratings in a game in which the engine plays `color`.
    #[must_use]
    pub fn ratings(&self, color: Color) -> Ratings {
        let (white, black) = color.fold_wb(
            (self.self_elo, self.opponent_elo),
            (self.opponent_elo, self.self_elo),
        );
        Ratings {
            white: Some(white),
            black: Some(black),
        }
    }

    /// Memory of tree and remembered evaluations together, in MiB.
    #[must_use]
    pub fn hash(&self) -> usize {
        self.parameters.hash + self.backend.cache
    }

    /// Shares out `hash` MiB: a quarter to remembered evaluations, the rest to
    /// the tree. A node in the tree is worth more than an evaluation outside
    /// of it, which only a transposition or a new game asks for again.
    pub fn set_hash(&mut self, hash: usize) {
        self.backend.cache = hash / 4;
        self.parameters.hash = hash - self.backend.cache;
    }

    /// Sets the threads of the search, which are those that call the backend;
    /// 0 leaves it to the backend.
    pub fn set_threads(&mut self, threads: usize) {
        self.parameters.threads = threads;
        self.backend.threads = threads;
    }

    /// Sets the seed of everything random.
    pub fn set_seed(&mut self, seed: u64) {
        self.parameters.seed = seed;
        self.backend.seed = seed;
    }
}
