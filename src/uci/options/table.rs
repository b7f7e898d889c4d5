//! The table of options.

use super::{Button, Entry, Kind};
use crate::agent::AgentKind;
use crate::nn::{BackendKind, Precision};
use clap::ValueEnum;

/// How clients see the network that is part of the program.
const BUILT_IN: &str = "<built-in>";

pub(super) const TABLE: &[Entry] = &[
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
            values: values::<AgentKind>,
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
            values: values::<BackendKind>,
            get: |settings| name(settings.backend.kind),
            set: |settings, value| choose(&mut settings.backend.kind, value),
        },
        help: "What evaluates positions: `torch` is the network, `uniform` and `random` need none \
               and are there for measuring and testing.",
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
            values: values::<Precision>,
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
    Entry {
        name: "CPuct",
        kind: Kind::Decimal {
            min: 0.0,
            max: 100.0,
            get: |settings| settings.parameters.cpuct,
            set: |settings, value| settings.parameters.cpuct = value,
        },
        help: "How much the search explores: the factor of the prior in PUCT at a node with few \
               visits.",
    },
    Entry {
        name: "CPuctBase",
        kind: Kind::Decimal {
            min: 1.0,
            max: 1e9,
            get: |settings| settings.parameters.cpuct_base,
            set: |settings, value| settings.parameters.cpuct_base = value,
        },
        help: "Visits at which exploration begins to grow.",
    },
    Entry {
        name: "CPuctFactor",
        kind: Kind::Decimal {
            min: 0.0,
            max: 1000.0,
            get: |settings| settings.parameters.cpuct_factor,
            set: |settings, value| settings.parameters.cpuct_factor = value,
        },
        help: "How fast exploration grows with the logarithm of the visits.",
    },
    Entry {
        name: "CPuctSpread",
        kind: Kind::Decimal {
            min: 0.0,
            max: 10.0,
            get: |settings| settings.parameters.cpuct_spread,
            set: |settings, value| settings.parameters.cpuct_spread = value,
        },
        help: "How much exploration grows with the spread of the values found below a position; 0 \
               not at all. KataGo's dynamic cpuct, 0.85 there.",
    },
    Entry {
        name: "FpuValue",
        kind: Kind::Decimal {
            min: -100.0,
            max: 100.0,
            get: |settings| settings.parameters.fpu_value,
            set: |settings, value| settings.parameters.fpu_value = value,
        },
        help: "First-play urgency: how far below its parent an unvisited move is thought to be, \
               times the root of the share of the policy that has been visited.",
    },
    Entry {
        name: "DrawScore",
        kind: Kind::Decimal {
            min: -1.0,
            max: 1.0,
            get: |settings| settings.parameters.draw_score,
            set: |settings, value| settings.parameters.draw_score = value,
        },
        help: "What a draw is worth to the side to move: below 0 the engine avoids it, above 0 it seeks \
               it.",
    },
    Entry {
        name: "MovesLeftMaxEffect",
        kind: Kind::Decimal {
            min: 0.0,
            max: 1.0,
            get: |settings| settings.parameters.moves_left_max_effect,
            set: |settings, value| settings.parameters.moves_left_max_effect = value,
        },
        help: "Most that the length of the game adds to a move's value: the winner hurries, the loser \
               does not. 0 switches it off; so does a network that tells no length.",
    },
    Entry {
        name: "MovesLeftThreshold",
        kind: Kind::Decimal {
            min: 0.0,
            max: 1.0,
            get: |settings| settings.parameters.moves_left_threshold,
            set: |settings, value| settings.parameters.moves_left_threshold = value,
        },
        help: "Certainty of the result, 0 to 1, from which the length of the game counts.",
    },
    Entry {
        name: "MovesLeftSlope",
        kind: Kind::Decimal {
            min: 0.0,
            max: 1.0,
            get: |settings| settings.parameters.moves_left_slope,
            set: |settings, value| settings.parameters.moves_left_slope = value,
        },
        help: "What a ply more or less is worth.",
    },
    Entry {
        name: "MovesLeftConstantFactor",
        kind: Kind::Decimal {
            min: -1.0,
            max: 1.0,
            get: |settings| settings.parameters.moves_left_constant,
            set: |settings, value| settings.parameters.moves_left_constant = value,
        },
        help: "The length's weight, by certainty above the threshold: constant part.",
    },
    Entry {
        name: "MovesLeftScaledFactor",
        kind: Kind::Decimal {
            min: -2.0,
            max: 2.0,
            get: |settings| settings.parameters.moves_left_scaled,
            set: |settings, value| settings.parameters.moves_left_scaled = value,
        },
        help: "The same, linear part.",
    },
    Entry {
        name: "MovesLeftQuadraticFactor",
        kind: Kind::Decimal {
            min: -2.0,
            max: 2.0,
            get: |settings| settings.parameters.moves_left_quadratic,
            set: |settings, value| settings.parameters.moves_left_quadratic = value,
        },
        help: "The same, quadratic part.",
    },
    Entry {
        name: "UncertaintyCoefficient",
        kind: Kind::Decimal {
            min: 0.0,
            max: 10.0,
            get: |settings| settings.parameters.uncertainty_coefficient,
            set: |settings, value| settings.parameters.uncertainty_coefficient = value,
        },
        help: "Evaluations count the more the surer the network is of them: c / (error + c / 8), with \
               this c; 0 lets all count alike. KataGo's uncertainty weighting, 0.25 there.",
    },
    Entry {
        name: "PolicyTemperature",
        kind: Kind::Decimal {
            min: 0.01,
            max: 100.0,
            get: |settings| settings.parameters.policy_temperature,
            set: |settings, value| settings.parameters.policy_temperature = value,
        },
        help: "Softmax temperature of the network's policy; above 1 the search looks at more \
               moves.",
    },
    Entry {
        name: "SmartPruningFactor",
        kind: Kind::Decimal {
            min: 0.0,
            max: 10.0,
            get: |settings| settings.parameters.smart_pruning,
            set: |settings, value| settings.parameters.smart_pruning = value,
        },
        help: "How readily a search under a clock ends early: when the visits still to come, \
               divided by this, are fewer than the best move's lead. 0 always thinks to the end.",
    },
    Entry {
        name: "TwoFoldDraws",
        kind: Kind::Check {
            get: |settings| settings.parameters.two_fold_draws,
            set: |settings, value| settings.parameters.two_fold_draws = value,
        },
        help: "Whether a position that occurs a second time within the search counts as a draw; \
               otherwise only the third occurrence does.",
    },
    Entry {
        name: "Transpositions",
        kind: Kind::Check {
            get: |settings| settings.parameters.transpositions,
            set: |settings, value| settings.parameters.transpositions = value,
        },
        help: "Whether all ways to a position lead to one node of the tree, so that what is learnt \
               on one counts on all.",
    },
    Entry {
        name: "MaxCollisionVisits",
        kind: Kind::Spin {
            min: 1,
            max: 1_000_000,
            get: |settings| u64::from(settings.parameters.max_collisions),
            set: |settings, value| settings.parameters.max_collisions = value as u32,
        },
        help: "Visits that may come to nothing while a batch is gathered, because the leaf is \
               being evaluated already, in a large tree; in a small one fewer.",
    },
    Entry {
        name: "MaxOutOfOrderEvalsFactor",
        kind: Kind::Decimal {
            min: 0.0,
            max: 100.0,
            get: |settings| settings.parameters.out_of_order,
            set: |settings, value| settings.parameters.out_of_order = value,
        },
        help: "Visits to leaves of known value while a batch is gathered, as a multiple of the \
               batch.",
    },
    Entry {
        name: "RootPolicyTemperature",
        kind: Kind::Decimal {
            min: 0.0,
            max: 100.0,
            get: |settings| settings.parameters.root_policy_temperature,
            set: |settings, value| settings.parameters.root_policy_temperature = value,
        },
        help: "Softmax temperature of the policy at the root; 0 leaves it to `PolicyTemperature`.",
    },
    Entry {
        name: "DirichletNoiseEpsilon",
        kind: Kind::Decimal {
            min: 0.0,
            max: 1.0,
            get: |settings| settings.parameters.noise_epsilon,
            set: |settings, value| settings.parameters.noise_epsilon = value,
        },
        help: "Share of Dirichlet noise in the root's policy, for self-play.",
    },
    Entry {
        name: "DirichletNoiseAlpha",
        kind: Kind::Decimal {
            min: 0.001,
            max: 10000.0,
            get: |settings| settings.parameters.noise_alpha,
            set: |settings, value| settings.parameters.noise_alpha = value,
        },
        help: "How even that noise is.",
    },
    Entry {
        name: "GumbelMoves",
        kind: Kind::Spin {
            min: 0,
            max: 256,
            get: |settings| u64::from(settings.parameters.gumbel_moves),
            set: |settings, value| settings.parameters.gumbel_moves = value as u32,
        },
        help: "Moves that share the visits at the root by Gumbel's selection and sequential \
               halving, under `go nodes`; 0 leaves the root to PUCT. For few visits: Danihelka et \
               al. 2022.",
    },
    Entry {
        name: "GumbelScale",
        kind: Kind::Decimal {
            min: 0.0,
            max: 100.0,
            get: |settings| settings.parameters.gumbel_scale,
            set: |settings, value| settings.parameters.gumbel_scale = value,
        },
        help: "How much values count against priors in Gumbel's selection.",
    },
    Entry {
        name: "Temperature",
        kind: Kind::Decimal {
            min: 0.0,
            max: 100.0,
            get: |settings| settings.parameters.temperature,
            set: |settings, value| settings.parameters.temperature = value,
        },
        help: "Temperature at which the move is drawn by its visits; 0 plays the best.",
    },
    Entry {
        name: "SyzygyPath",
        kind: Kind::Text {
            get: |settings| settings.parameters.tablebase.path().to_owned(),
            set: |settings, value| {
                settings.parameters.tablebase.set_path(value);
                Ok(())
            },
        },
        help: "Folders of Syzygy endgame tablebases (`.rtbw`, and `.rtbz` where there are any), with \
               `;` between them on Windows and `:` elsewhere. They are looked up on `isready`.",
    },
    Entry {
        name: "Syzygy50MoveRule",
        kind: Kind::Check {
            get: |settings| settings.parameters.tablebase.fifty_move_rule,
            set: |settings, value| settings.parameters.tablebase.fifty_move_rule = value,
        },
        help: "Whether tablebase wins that take too long for the 50-move rule count as draws.",
    },
    Entry {
        name: "VerboseMoveStats",
        kind: Kind::Check {
            get: |settings| settings.verbose_move_stats,
            set: |settings, value| settings.verbose_move_stats = value,
        },
        help: "Before `bestmove`, every root move in numbers: visits, prior, WDL, Q.",
    },
    Entry {
        name: "LogFile",
        kind: Kind::Text {
            get: |settings| match &settings.log_file {
                Some(path) => path.display().to_string(),
                None => String::new(),
            },
            set: |settings, value| {
                settings.log_file = (!value.is_empty()).then(|| value.into());
                Ok(())
            },
        },
        help: "A file to which all input and output is appended, with the time.",
    },
    Entry {
        name: "Clear Hash",
        kind: Kind::Button(Button::ClearHash),
        help: "Forgets the search tree and all remembered evaluations.",
    },
];

/// The names of all values of a type, as on the command line.
fn values<T: ValueEnum>() -> Vec<String> {
    T::value_variants().iter().cloned().map(name).collect()
}

fn name<T: ValueEnum>(value: T) -> String {
    value
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

fn choose<T: ValueEnum>(target: &mut T, value: &str) {
    if let Ok(value) = T::from_str(value, true) {
        *target = value;
    }
}
