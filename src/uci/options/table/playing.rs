//! Who plays, with what, and how clients talk to it.

use super::{choose, name, values_of};
use crate::agent::AgentKind;
use crate::nn::{BackendKind, Precision};
use crate::uci::options::{Entry, Kind};

/// How clients see the network that is part of the program.
const BUILT_IN: &str = "<built-in>";

/// The highest rating that Maia-3 knows.
const MAX_ELO: u64 = 5000;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "Net",
        kind: Kind::Text {
            get: |settings| match &settings.backend.net {
                Some(path) => path.display().to_string(),
                None => BUILT_IN.to_owned(),
            },
            set: |settings, value| {
                let file = !value.is_empty() && value != BUILT_IN;
                settings.backend.net = file.then(|| value.into());
                Ok(())
            },
        },
        help: "The network: a TorchScript file. It is loaded on `isready`.",
    },
    Entry {
        name: "Agent",
        kind: Kind::Combo {
            values: values_of::<AgentKind>,
            get: |settings| name(settings.agent),
            set: |settings, value| choose(&mut settings.agent, value),
        },
        help: "Who chooses the move: `mcts` searches a tree, `policy` plays the move that the \
               network likes best (one evaluation, whatever the clock), `value` the move after \
               which it likes the position best (one evaluation for each legal move).",
    },
    Entry {
        name: "Backend",
        kind: Kind::Combo {
            values: values_of::<BackendKind>,
            get: |settings| name(settings.backend.kind),
            set: |settings, value| choose(&mut settings.backend.kind, value),
        },
        help: "What evaluates positions: `torch` is the network, `uniform` and `random` need none \
               and are there for measuring and testing.",
    },
    Entry {
        name: "SelfElo",
        kind: Kind::Spin {
            min: 0,
            max: MAX_ELO,
            get: |settings| settings.self_elo.into(),
            set: |settings, value| settings.self_elo = value as u16,
        },
        help: "The rating of the players whom the engine imitates, with a network that asks for \
               one: Maia-3's do, and are best played by `policy`.",
    },
    Entry {
        name: "OppoElo",
        kind: Kind::Spin {
            min: 0,
            max: MAX_ELO,
            get: |settings| settings.opponent_elo.into(),
            set: |settings, value| settings.opponent_elo = value as u16,
        },
        help: "The rating of the opponent, for such a network.",
    },
    Entry {
        name: "Device",
        kind: Kind::Text {
            get: |settings| settings.backend.devices.to_string(),
            set: |settings, value| {
                settings.backend.devices = value.parse().map_err(
                    |_| "auto, cpu, cuda, cuda:1 (the device's number) or cuda:0,cuda:1 (several)",
                )?;
                Ok(())
            },
        },
        help: "Where the network is computed: `auto` (CUDA if there is a device, else the CPU), \
               `cpu`, `cuda`, `cuda:1` and so on for a further device, or several that share the \
               work, `cuda:0,cuda:1`.",
    },
    Entry {
        name: "Precision",
        kind: Kind::Combo {
            values: values_of::<Precision>,
            get: |settings| name(settings.backend.precision),
            set: |settings, value| choose(&mut settings.backend.precision, value),
        },
        help: "The numbers it is computed in: `auto` takes `bf16` on a CPU that computes in it, \
               else `f32`, and `fp16` on CUDA.",
    },
    Entry {
        name: "Threads",
        kind: Kind::Spin {
            min: 0,
            max: 1024,
            get: |settings| settings.parameters.threads as u64,
            set: |settings, value| settings.set_threads(value as usize),
        },
        help: "Threads of the search; 0 takes what suits the backend.",
    },
    Entry {
        name: "Hash",
        kind: Kind::Spin {
            min: 1,
            max: 1 << 20,
            get: |settings| settings.hash() as u64,
            set: |settings, value| settings.set_hash(value as usize),
        },
        help: "Memory in MiB of the search tree (three quarters of it) and of remembered \
               evaluations (a quarter) together.",
    },
    Entry {
        name: "MultiPV",
        kind: Kind::Spin {
            min: 1,
            max: 500,
            get: |settings| settings.parameters.multi_pv as u64,
            set: |settings, value| settings.parameters.multi_pv = value as usize,
        },
        help: "How many of the best moves are reported, each with its line.",
    },
    Entry {
        name: "Ponder",
        kind: Kind::Check {
            get: |settings| settings.ponder,
            set: |settings, value| settings.ponder = value,
        },
        help: "Whether `bestmove` names the reply to ponder on.",
    },
    Entry {
        name: "UCI_Chess960",
        kind: Kind::Check {
            get: |settings| settings.chess960,
            set: |settings, value| settings.chess960 = value,
        },
        help: "Castling is written as king takes rook, as in Chess960. It is read either way; a \
               position that only Chess960 can have is understood without this option too.",
    },
    Entry {
        name: "UCI_ShowWDL",
        kind: Kind::Check {
            get: |settings| settings.show_wdl,
            set: |settings, value| settings.show_wdl = value,
        },
        help: "Scores come with the probabilities of win, draw and loss, in thousandths.",
    },
    Entry {
        name: "UCI_ShowMovesLeft",
        kind: Kind::Check {
            get: |settings| settings.show_moves_left,
            set: |settings, value| settings.show_moves_left = value,
        },
        help: "Scores come with the moves to the end of the game, where the network tells.",
    },
    Entry {
        name: "UCI_AnalyseMode",
        kind: Kind::Check {
            get: |settings| settings.analyse_mode,
            set: |settings, value| settings.analyse_mode = value,
        },
        help: "For analysis: no search ends before its time because its best move cannot be \
               overtaken, and `ucinewgame` leaves the search tree alone.",
    },
    Entry {
        name: "Move Overhead",
        kind: Kind::Spin {
            min: 0,
            max: 10_000,
            get: |settings| settings.parameters.move_overhead,
            set: |settings, value| settings.parameters.move_overhead = value,
        },
        help: "Milliseconds kept back on every move for the client and the wire. More is safer \
               over a network.",
    },
    Entry {
        name: "MinibatchSize",
        kind: Kind::Spin {
            min: 0,
            max: 1024,
            get: |settings| settings.parameters.minibatch as u64,
            set: |settings, value| settings.parameters.minibatch = value as usize,
        },
        help: "Most positions that a thread gathers before it has them evaluated; 0 takes what suits \
               the backend. In a small tree there are fewer: the square root of its visits.",
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
        help: "Seed of the random backend and of the moves drawn at a temperature.",
    },
];
