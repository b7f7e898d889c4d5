//! Who plays, with what, and how clients talk to it.

use super::{choose, name, values_of};
use crate::agent::{AgentKind, LOWEST_RATING};
use crate::nn::{BackendKind, CodePolicy, Precision};
use crate::player::HIGHEST_LEVEL;
use crate::uci::options::{Entry, Kind};
use std::path::{Path, PathBuf};

/// How clients see the network that is part of the program.
const BUILT_IN: &str = "<built-in>";

/// The highest rating that Maia-3 knows.
const MAX_ELO: u64 = 5000;

fn built_in_or(path: Option<&Path>) -> String {
    path.map_or_else(|| BUILT_IN.to_owned(), |path| path.display().to_string())
}

fn named(value: &str) -> Option<PathBuf> {
    let is_file = !value.is_empty() && value != BUILT_IN;
    is_file.then(|| value.into())
}

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "Net",
        kind: Kind::Text {
            get: |settings| built_in_or(settings.player.backend.network.net.as_deref()),
            set: |settings, value| {
                settings.player.backend.network.net = named(value);
                Ok(())
            },
        },
        help: "The network: a TorchScript file, or `<built-in>`. Load only files you trust.",
    },
    Entry {
        name: "AllowNetworkCode",
        kind: Kind::Check {
            get: |settings| settings.player.backend.network.code == CodePolicy::Allowed,
            set: |settings, value| {
                settings.player.backend.network.code = CodePolicy::allowed_if(value);
            },
        },
        help: "Loads network files whatever code they bring, which may then do anything. \
               Without it, only files like those of the engine's exporters load.",
    },
    Entry {
        name: "Agent",
        kind: Kind::Combo {
            values: values_of::<AgentKind>,
            get: |settings| name(settings.player.agent),
            set: |settings, value| choose(&mut settings.player.agent, value),
        },
        help: "Chooses the move: by a search (`mcts`), the network's first choice (`policy`), \
               one ply ahead (`value`), as people play (`human`), off an imagined future \
               (`diffusion`), or by a search in the network's imagination (`world`). The last \
               two are for networks of these families.",
    },
    Entry {
        name: "DiffusionSteps",
        kind: Kind::Spin {
            min: 0,
            max: 100,
            get: |settings| settings.player.options.diffusion_steps as u64,
            set: |settings, value| {
                settings.player.options.diffusion_steps = value as usize;
                settings.player.backend.network.decoding.steps = (value as usize).max(1);
            },
        },
        help: "Evaluations in which a network that imagines futures does so, for every agent. \
               With 0 the agent `diffusion` takes as many as the clock allows.",
    },
    Entry {
        name: "DiffusionHorizon",
        kind: Kind::Spin {
            min: 0,
            max: 7,
            get: |settings| settings.player.backend.network.decoding.horizon as u64,
            set: |settings, value| {
                settings.player.backend.network.decoding.horizon = value as usize;
            },
        },
        help: "Most plies that such a network imagines; 0 stands for all that it can.",
    },
    Entry {
        name: "DiffusionTrust",
        kind: Kind::Spin {
            min: 0,
            max: 1000,
            get: |settings| settings.player.backend.network.decoding.trust.into(),
            set: |settings, value| {
                settings.player.backend.network.decoding.trust = value as u16;
            },
        },
        help: "How much it counts what first moves lead to, in networks that imagine the future \
               of one in each evaluation but the first: what a win instead of a draw adds to a \
               move's logit, in tenths. With 0 one future is imagined step by step.",
    },
    Entry {
        name: "WorldTopK",
        kind: Kind::Spin {
            min: 1,
            max: 248,
            get: |settings| settings.player.options.search.world_top as u64,
            set: |settings, value| settings.player.options.search.world_top = value as usize,
        },
        help: "Moves that the agent `world` considers in an imagined position.",
    },
    Entry {
        name: "WorldContext",
        kind: Kind::Spin {
            min: 1,
            max: 1024,
            get: |settings| settings.player.options.search.world_context as u64,
            set: |settings, value| settings.player.options.search.world_context = value as usize,
        },
        help: "Moves that it looks back on while it imagines one, that one included; no more \
               than its network was made for.",
    },
    Entry {
        name: "UCI_LimitStrength",
        kind: Kind::Check {
            get: |settings| settings.player.limit_strength,
            set: |settings, value| settings.player.limit_strength = value,
        },
        help: "Plays as strongly as `UCI_Elo` says, whatever `Agent` is. Analysis keeps its full \
               strength.",
    },
    Entry {
        name: "UCI_Elo",
        kind: Kind::Spin {
            min: LOWEST_RATING as u64,
            max: HIGHEST_LEVEL as u64,
            get: |settings| settings.player.elo.into(),
            set: |settings, value| settings.player.elo = value as u16,
        },
        help: "Playing strength on the scale of Lichess: up to 2400 like people of that rating, \
               above by a short search.",
    },
    Entry {
        name: "UCI_Opponent",
        kind: Kind::Text {
            get: |settings| settings.player.opponent.clone(),
            set: |settings, value| {
                value.clone_into(&mut settings.player.opponent);
                Ok(())
            },
        },
        help: "Title, rating, kind and name of the opponent, as in `GM 2800 human Gary Kasparov`. A \
               rating takes the place of `OppoElo`.",
    },
    Entry {
        name: "HumanNet",
        kind: Kind::Text {
            get: |settings| built_in_or(settings.player.human_net.as_deref()),
            set: |settings, value| {
                settings.player.human_net = named(value);
                Ok(())
            },
        },
        help: "The network that plays like people. `<built-in>` is tessera-human or, where that \
               is missing, the network of `Net`.",
    },
    Entry {
        name: "HumanTime",
        kind: Kind::Check {
            get: |settings| settings.player.options.human_time,
            set: |settings, value| settings.player.options.human_time = value,
        },
        help: "The agent `human` takes the time that a person might take, at most a tenth of \
               the clock.",
    },
    Entry {
        name: "Backend",
        kind: Kind::Combo {
            values: values_of::<BackendKind>,
            get: |settings| name(settings.player.backend.kind),
            set: |settings, value| choose(&mut settings.player.backend.kind, value),
        },
        help: "Evaluates positions: `torch` runs the network, `check` also compares it with \
               itself in f32. `uniform` and `random` need no network.",
    },
    Entry {
        name: "SelfElo",
        kind: Kind::Spin {
            min: 0,
            max: MAX_ELO,
            get: |settings| settings.player.self_elo.into(),
            set: |settings, value| settings.player.self_elo = value as u16,
        },
        help: "Rating of the players the engine imitates. Only networks that take ratings use \
               it.",
    },
    Entry {
        name: "OppoElo",
        kind: Kind::Spin {
            min: 0,
            max: MAX_ELO,
            get: |settings| settings.player.opponent_elo.into(),
            set: |settings, value| settings.player.opponent_elo = value as u16,
        },
        help: "Rating of the opponent, for the same networks.",
    },
    Entry {
        name: "Device",
        kind: Kind::Text {
            get: |settings| settings.player.backend.network.devices.to_string(),
            set: |settings, value| {
                settings.player.backend.network.devices = value.parse().map_err(
                    |_| "auto, cpu, cuda, cuda:1 (the device's number) or cuda:0,cuda:1 (several, at most 32)",
                )?;
                Ok(())
            },
        },
        help: "Where the network runs: `auto` (CUDA if there is a device), `cpu`, `cuda`, \
               `cuda:1`, or several, as in `cuda:0,cuda:1`.",
    },
    Entry {
        name: "Precision",
        kind: Kind::Combo {
            values: values_of::<Precision>,
            get: |settings| name(settings.player.backend.network.precision),
            set: |settings, value| choose(&mut settings.player.backend.network.precision, value),
        },
        help: "Format that the network runs in. `auto` takes the fastest here, and `tessera \
               doctor` says which that is.",
    },
    Entry {
        name: "Threads",
        kind: Kind::Spin {
            min: 0,
            max: 1024,
            get: |settings| settings.player.options.search.threads as u64,
            set: |settings, value| settings.player.set_threads(value as usize),
        },
        help: "Search threads; 0 takes what the backend recommends.",
    },
    Entry {
        name: "Hash",
        kind: Kind::Spin {
            min: 1,
            max: 1 << 20,
            get: |settings| settings.player.hash() as u64,
            set: |settings, value| settings.player.set_hash(value as usize),
        },
        help: "Memory in MiB for the search tree (three quarters) and the evaluation cache (one \
               quarter). With `MateSearch` a sixteenth of the tree's part holds proofs of mates, \
               and each thread takes 128 KiB besides.",
    },
    Entry {
        name: "MultiPV",
        kind: Kind::Spin {
            min: 1,
            max: 500,
            get: |settings| settings.player.options.search.multi_pv as u64,
            set: |settings, value| settings.player.options.search.multi_pv = value as usize,
        },
        help: "Number of best moves to report, each with its line.",
    },
    Entry {
        name: "Ponder",
        kind: Kind::Check {
            get: |settings| settings.ponder,
            set: |settings, value| settings.ponder = value,
        },
        help: "Whether `bestmove` also names the expected reply to ponder on.",
    },
    Entry {
        name: "UCI_Chess960",
        kind: Kind::Check {
            get: |settings| settings.chess960,
            set: |settings, value| settings.chess960 = value,
        },
        help: "Writes castling as king takes rook. Both notations, and Chess960 positions, are \
               read without it too.",
    },
    Entry {
        name: "UCI_ShowWDL",
        kind: Kind::Check {
            get: |settings| settings.show_wdl,
            set: |settings, value| settings.show_wdl = value,
        },
        help: "Reports the probabilities of win, draw and loss with each score, in thousandths.",
    },
    Entry {
        name: "UCI_ShowMovesLeft",
        kind: Kind::Check {
            get: |settings| settings.show_moves_left,
            set: |settings, value| settings.show_moves_left = value,
        },
        help: "Reports the expected number of moves to the end of the game with each score, if the \
               network predicts it.",
    },
    Entry {
        name: "UCI_AnalyseMode",
        kind: Kind::Check {
            get: |settings| settings.player.analyse_mode,
            set: |settings, value| settings.player.analyse_mode = value,
        },
        help: "For analysis: no search ends early because its best move can no longer be \
               overtaken, and `ucinewgame` keeps the search tree.",
    },
    Entry {
        name: "Move Overhead",
        kind: Kind::Spin {
            min: 0,
            max: 10_000,
            get: |settings| settings.player.options.search.move_overhead,
            set: |settings, value| settings.player.options.search.move_overhead = value,
        },
        help: "Milliseconds kept back on every move for delays in the client and the connection. \
               Use more over a network.",
    },
    Entry {
        name: "MinibatchSize",
        kind: Kind::Spin {
            min: 0,
            max: 1024,
            get: |settings| settings.player.options.search.minibatch as u64,
            set: |settings, value| settings.player.options.search.minibatch = value as usize,
        },
        help: "Most positions that a thread gathers for one evaluation; 0 takes what the \
               backend recommends.",
    },
    Entry {
        name: "Seed",
        kind: Kind::Spin {
            min: 0,
            // Spin boxes of clients hold 32 bits with a sign.
            max: i32::MAX as u64,
            get: |settings| settings.player.options.search.seed,
            set: |settings, value| settings.player.set_seed(value),
        },
        help: "Seed of the random backend and of moves sampled at a temperature. With 0 the games of \
               the agent `human` and of all levels differ.",
    },
];
