//! Who plays, with what, and how clients talk to it.

use super::{choose, name, values_of};
use crate::agent::{AgentKind, HIGHEST_LEVEL, LOWEST_LEVEL};
use crate::nn::{BackendKind, CodePolicy, Precision};
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
            get: |settings| built_in_or(settings.backend.network.net.as_deref()),
            set: |settings, value| {
                settings.backend.network.net = named(value);
                Ok(())
            },
        },
        help: "The network: a TorchScript file, loaded on `isready`. `<built-in>` is the network \
               inside the program. Load only files you trust.",
    },
    Entry {
        name: "AllowNetworkCode",
        kind: Kind::Check {
            get: |settings| settings.backend.network.code == CodePolicy::Allowed,
            set: |settings, value| {
                settings.backend.network.code = CodePolicy::allowed_if(value);
            },
        },
        help: "Loads a network file whatever code it brings, which may then do anything. Without \
               it, files are refused whose code is not like that of the engine's exporters.",
    },
    Entry {
        name: "Agent",
        kind: Kind::Combo {
            values: values_of::<AgentKind>,
            get: |settings| name(settings.agent),
            set: |settings, value| choose(&mut settings.agent, value),
        },
        help: "Chooses the move. `mcts` searches a tree. `policy` plays the move with the highest \
               prior (one evaluation, whatever the clock). `value` looks one ply ahead at the \
               policy's candidates and plays the one with the best value, weighed with its prior. \
               `human` samples its move as people of the rating `SelfElo` play, with the network \
               of `HumanNet` unless `Net` names one.",
    },
    Entry {
        name: "UCI_LimitStrength",
        kind: Kind::Check {
            get: |settings| settings.limit_strength,
            set: |settings, value| settings.limit_strength = value,
        },
        help: "Plays like people of the rating `UCI_Elo`, whatever `Agent` is, from the next move \
               on. Analysis stays as it is: `MultiPV` above 1, `go infinite`, `UCI_AnalyseMode`.",
    },
    Entry {
        name: "UCI_Elo",
        kind: Kind::Spin {
            min: LOWEST_LEVEL as u64,
            max: HIGHEST_LEVEL as u64,
            get: |settings| settings.elo.into(),
            set: |settings, value| settings.elo = value as u16,
        },
        help: "That rating, on the scale of the people whose games the network has learned: \
               Lichess's. The opponent counts as equal unless `UCI_Opponent` says otherwise. \
               Levels of 1200 and less are about alike, as those people are.",
    },
    Entry {
        name: "UCI_Opponent",
        kind: Kind::Text {
            get: |settings| settings.opponent.clone(),
            set: |settings, value| {
                value.clone_into(&mut settings.opponent);
                Ok(())
            },
        },
        help: "Title, rating, kind and name of the opponent, as in `GM 2800 human Gary Kasparov`. A \
               rating takes the place of `OppoElo`.",
    },
    Entry {
        name: "HumanNet",
        kind: Kind::Text {
            get: |settings| built_in_or(settings.human_net.as_deref()),
            set: |settings, value| {
                settings.human_net = named(value);
                Ok(())
            },
        },
        help: "The network that plays like people, loaded once it is needed. `<built-in>` is \
               tessera-human inside the program; where that is missing, the network of `Net` \
               plays.",
    },
    Entry {
        name: "HumanTime",
        kind: Kind::Check {
            get: |settings| settings.parameters.human_time,
            set: |settings, value| settings.parameters.human_time = value,
        },
        help: "The agent `human` takes the time that a person might take, where there is a clock: \
               longer over moves that offer a choice, at most a tenth of the clock. The curve is \
               not fitted to games of people.",
    },
    Entry {
        name: "Backend",
        kind: Kind::Combo {
            values: values_of::<BackendKind>,
            get: |settings| name(settings.backend.kind),
            set: |settings, value| choose(&mut settings.backend.kind, value),
        },
        help: "Evaluates positions: `torch` runs the network; `check` also compares it with the \
               network in f32 on the CPU and logs the largest differences; `uniform` and `random` \
               need no network and serve for measuring and testing.",
    },
    Entry {
        name: "SelfElo",
        kind: Kind::Spin {
            min: 0,
            max: MAX_ELO,
            get: |settings| settings.self_elo.into(),
            set: |settings, value| settings.self_elo = value as u16,
        },
        help: "Rating of the players the engine imitates. Only networks that take ratings use it: \
               those trained with `model.elo`, and Maia-3's. The agent `human` imitates best.",
    },
    Entry {
        name: "OppoElo",
        kind: Kind::Spin {
            min: 0,
            max: MAX_ELO,
            get: |settings| settings.opponent_elo.into(),
            set: |settings, value| settings.opponent_elo = value as u16,
        },
        help: "Rating of the opponent, for the same networks.",
    },
    Entry {
        name: "Device",
        kind: Kind::Text {
            get: |settings| settings.backend.network.devices.to_string(),
            set: |settings, value| {
                settings.backend.network.devices = value.parse().map_err(
                    |_| "auto, cpu, cuda, cuda:1 (the device's number) or cuda:0,cuda:1 (several, at most 32)",
                )?;
                Ok(())
            },
        },
        help: "Where the network runs: `auto` (CUDA if there is a device, else the CPU), `cpu`, \
               `cuda`, `cuda:1` for another device, or several that share the work, as in \
               `cuda:0,cuda:1`.",
    },
    Entry {
        name: "Precision",
        kind: Kind::Combo {
            values: values_of::<Precision>,
            get: |settings| name(settings.backend.network.precision),
            set: |settings, value| choose(&mut settings.backend.network.precision, value),
        },
        help: "Format that the network runs in. `auto` takes `fp16` on CUDA. On a CPU it takes what \
               this network is fastest in here, of `int8`, `bf16` and `f32`: it measures that once \
               and keeps the answer; `tessera doctor` says which it is, and why. `int8` computes \
               the dense layers of Chessformers in 8-bit integers and everything else in `bf16` or \
               `f32`, whichever the processor prefers.",
    },
    Entry {
        name: "Threads",
        kind: Kind::Spin {
            min: 0,
            max: 1024,
            get: |settings| settings.parameters.threads as u64,
            set: |settings, value| settings.set_threads(value as usize),
        },
        help: "Search threads; 0 takes what the backend recommends.",
    },
    Entry {
        name: "Hash",
        kind: Kind::Spin {
            min: 1,
            max: 1 << 20,
            get: |settings| settings.hash() as u64,
            set: |settings, value| settings.set_hash(value as usize),
        },
        help: "Memory in MiB for the search tree (three quarters) and the evaluation cache (one \
               quarter).",
    },
    Entry {
        name: "MultiPV",
        kind: Kind::Spin {
            min: 1,
            max: 500,
            get: |settings| settings.parameters.multi_pv as u64,
            set: |settings, value| settings.parameters.multi_pv = value as usize,
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
        help: "Writes castling as king takes rook, as Chess960 does. The engine reads both \
               notations, and Chess960 positions, without this option too.",
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
            get: |settings| settings.analyse_mode,
            set: |settings, value| settings.analyse_mode = value,
        },
        help: "For analysis: no search ends early because its best move can no longer be \
               overtaken, and `ucinewgame` keeps the search tree.",
    },
    Entry {
        name: "Move Overhead",
        kind: Kind::Spin {
            min: 0,
            max: 10_000,
            get: |settings| settings.parameters.move_overhead,
            set: |settings, value| settings.parameters.move_overhead = value,
        },
        help: "Milliseconds kept back on every move for delays in the client and the connection. \
               Use more over a network.",
    },
    Entry {
        name: "MinibatchSize",
        kind: Kind::Spin {
            min: 0,
            max: 1024,
            get: |settings| settings.parameters.minibatch as u64,
            set: |settings, value| settings.parameters.minibatch = value as usize,
        },
        help: "Largest number of positions that a thread gathers for one evaluation; 0 takes what \
               the backend recommends. Small trees use smaller batches, of the square root of the \
               root's visits.",
    },
    Entry {
        name: "Seed",
        kind: Kind::Spin {
            min: 0,
            // Spin boxes of clients hold 32 bits with a sign.
            max: i32::MAX as u64,
            get: |settings| settings.parameters.seed,
            set: |settings, value| settings.set_seed(value),
        },
        help: "Seed of the random backend and of moves sampled at a temperature. With 0 the games of \
               the agent `human` differ.",
    },
];
