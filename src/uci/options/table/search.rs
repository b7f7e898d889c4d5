//! The rest of the search, and what is told of it.

use crate::uci::options::{Button, Entry, Kind};

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "PolicyTemperature",
        kind: Kind::Decimal {
            min: 0.01,
            max: 100.0,
            get: |settings| settings.player.options.search.policy_temperature,
            set: |settings, value| settings.player.options.search.policy_temperature = value,
        },
        help: "Softmax temperature of the policy; above 1 the search considers more moves.",
    },
    Entry {
        name: "SmartPruningFactor",
        kind: Kind::Decimal {
            min: 0.0,
            max: 10.0,
            get: |settings| settings.player.options.search.smart_pruning,
            set: |settings, value| settings.player.options.search.smart_pruning = value,
        },
        help: "Ends a search on the clock early once the visits that remain, divided by this, are \
               fewer than the best move's lead, and would make no other move the surest \
               (`LCBScale`). 0 always searches to the end.",
    },
    Entry {
        name: "LCBScale",
        kind: Kind::Decimal {
            min: 0.0,
            max: 10.0,
            get: |settings| settings.player.options.search.lcb_scale,
            set: |settings, value| settings.player.options.search.lcb_scale = value,
        },
        help: "Plays the move whose value, less this divided by the square root of its visits, is \
               highest; 0 plays the most visited move. `GumbelMoves` and `Temperature` choose \
               otherwise where they are not 0.",
    },
    Entry {
        name: "LCBMinVisits",
        kind: Kind::Decimal {
            min: 0.0,
            max: 1.0,
            get: |settings| settings.player.options.search.lcb_visits,
            set: |settings, value| settings.player.options.search.lcb_visits = value,
        },
        help: "Visits that a move needs for that, as a share of those of the most visited one.",
    },
    Entry {
        name: "MateSearch",
        kind: Kind::Check {
            get: |settings| settings.player.options.search.mate_search,
            set: |settings, value| settings.player.options.search.mate_search = value,
        },
        help: "Looks for forced mates beside the tree, at the root and at leaves, and plays king and \
               queen, rook or pawn against king perfectly.",
    },
    Entry {
        name: "TwoFoldDraws",
        kind: Kind::Check {
            get: |settings| settings.player.options.search.two_fold_draws,
            set: |settings, value| settings.player.options.search.two_fold_draws = value,
        },
        help: "Whether the second occurrence of a position within the search counts as a draw; \
               otherwise only the third does.",
    },
    Entry {
        name: "Transpositions",
        kind: Kind::Check {
            get: |settings| settings.player.options.search.transpositions,
            set: |settings, value| settings.player.options.search.transpositions = value,
        },
        help: "Whether a position has one node in the tree, whatever moves lead to it, so that all \
               its paths share its visits and value.",
    },
    Entry {
        name: "MaxCollisionVisits",
        kind: Kind::Spin {
            min: 1,
            max: 1_000_000,
            get: |settings| u64::from(settings.player.options.search.max_collisions),
            set: |settings, value| settings.player.options.search.max_collisions = value as u32,
        },
        help: "Most visits for each batch that may reach a leaf already under evaluation, in a \
               large tree; smaller trees allow fewer.",
    },
    Entry {
        name: "MaxOutOfOrderEvalsFactor",
        kind: Kind::Decimal {
            min: 0.0,
            max: 100.0,
            get: |settings| settings.player.options.search.out_of_order,
            set: |settings, value| settings.player.options.search.out_of_order = value,
        },
        help: "Most visits for each batch to leaves whose value is already known, as a multiple of \
               the batch.",
    },
    Entry {
        name: "RootPolicyTemperature",
        kind: Kind::Decimal {
            min: 0.0,
            max: 100.0,
            get: |settings| settings.player.options.search.root_policy_temperature,
            set: |settings, value| settings.player.options.search.root_policy_temperature = value,
        },
        help: "Softmax temperature of the policy at the root; 0 uses `PolicyTemperature`.",
    },
    Entry {
        name: "DirichletNoiseEpsilon",
        kind: Kind::Decimal {
            min: 0.0,
            max: 1.0,
            get: |settings| settings.player.options.search.noise_epsilon,
            set: |settings, value| settings.player.options.search.noise_epsilon = value,
        },
        help: "Share of Dirichlet noise in the root's priors, for self-play.",
    },
    Entry {
        name: "DirichletNoiseAlpha",
        kind: Kind::Decimal {
            min: 0.001,
            max: 10000.0,
            get: |settings| settings.player.options.search.noise_alpha,
            set: |settings, value| settings.player.options.search.noise_alpha = value,
        },
        help: "Concentration of that noise: higher values make it more even.",
    },
    Entry {
        name: "GumbelMoves",
        kind: Kind::Spin {
            min: 0,
            max: 256,
            get: |settings| u64::from(settings.player.options.search.gumbel_moves),
            set: |settings, value| settings.player.options.search.gumbel_moves = value as u32,
        },
        help: "Root moves that share the visits by Gumbel selection, under `go nodes`; 0 uses \
               PUCT at the root.",
    },
    Entry {
        name: "GumbelScale",
        kind: Kind::Decimal {
            min: 0.0,
            max: 100.0,
            get: |settings| settings.player.options.search.gumbel_scale,
            set: |settings, value| settings.player.options.search.gumbel_scale = value,
        },
        help: "Weight of values against priors in Gumbel selection.",
    },
    Entry {
        name: "Temperature",
        kind: Kind::Decimal {
            min: 0.0,
            max: 100.0,
            get: |settings| settings.player.options.search.temperature,
            set: |settings, value| settings.player.options.search.temperature = value,
        },
        help: "Temperature at which the move is sampled. 0 plays the best move, but with \
               `human` means 1.",
    },
    Entry {
        name: "TopP",
        kind: Kind::Decimal {
            min: 0.01,
            max: 1.0,
            get: |settings| settings.player.options.top_p,
            set: |settings, value| settings.player.options.top_p = value,
        },
        help: "`policy` and `human` draw only from the likeliest moves that together have this \
               probability; 1 leaves no move out.",
    },
    Entry {
        name: "SyzygyPath",
        kind: Kind::Text {
            get: |settings| settings.player.options.search.tablebase.path().to_owned(),
            set: |settings, value| {
                settings.player.options.search.tablebase.set_path(value);
                Ok(())
            },
        },
        help: "Folders of Syzygy endgame tablebases, separated by `;` on Windows and `:` \
               elsewhere. Loaded on `isready`.",
    },
    Entry {
        name: "Syzygy50MoveRule",
        kind: Kind::Check {
            get: |settings| settings.player.options.search.tablebase.fifty_move_rule,
            set: |settings, value| settings.player.options.search.tablebase.fifty_move_rule = value,
        },
        help: "Whether tablebase wins that take too long for the 50-move rule count as draws.",
    },
    Entry {
        name: "VerboseMoveStats",
        kind: Kind::Check {
            get: |settings| settings.verbose_move_stats,
            set: |settings, value| settings.verbose_move_stats = value,
        },
        help: "Prints the visits, prior, WDL and Q of every root move before `bestmove`.",
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
        help: "Clears the search tree and the evaluation cache.",
    },
];
