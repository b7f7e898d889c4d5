//! How visits are shared out among moves.

use super::{choose, name, values_of};
use crate::search::FpuStrategy;
use crate::uci::options::{Entry, Kind};
use clap::ValueEnum;

/// A strategy at the root that is none of its own.
const SAME: &str = "same";

pub(super) const ENTRIES: &[Entry] = &[
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
        name: "RootHasOwnCpuctParams",
        kind: Kind::Check {
            get: |settings| settings.parameters.root_has_own_cpuct,
            set: |settings, value| settings.parameters.root_has_own_cpuct = value,
        },
        help: "Whether the root explores by the three options that follow, as in Lc0; otherwise like \
               every other position.",
    },
    Entry {
        name: "CPuctAtRoot",
        kind: Kind::Decimal {
            min: 0.0,
            max: 100.0,
            get: |settings| settings.parameters.root_cpuct,
            set: |settings, value| settings.parameters.root_cpuct = value,
        },
        help: "`CPuct` of the root, where it has its own.",
    },
    Entry {
        name: "CPuctBaseAtRoot",
        kind: Kind::Decimal {
            min: 1.0,
            max: 1e9,
            get: |settings| settings.parameters.root_cpuct_base,
            set: |settings, value| settings.parameters.root_cpuct_base = value,
        },
        help: "`CPuctBase` of the root, where it has its own.",
    },
    Entry {
        name: "CPuctFactorAtRoot",
        kind: Kind::Decimal {
            min: 0.0,
            max: 1000.0,
            get: |settings| settings.parameters.root_cpuct_factor,
            set: |settings, value| settings.parameters.root_cpuct_factor = value,
        },
        help: "`CPuctFactor` of the root, where it has its own.",
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
        name: "FpuStrategy",
        kind: Kind::Combo {
            values: values_of::<FpuStrategy>,
            get: |settings| name(settings.parameters.fpu_strategy),
            set: |settings, value| choose(&mut settings.parameters.fpu_strategy, value),
        },
        help: "First-play urgency, what an unvisited move is taken to be worth: less than its parent \
               by `reduction`, or an `absolute` value. As in Lc0.",
    },
    Entry {
        name: "FpuValue",
        kind: Kind::Decimal {
            min: -100.0,
            max: 100.0,
            get: |settings| settings.parameters.fpu_value,
            set: |settings, value| settings.parameters.fpu_value = value,
        },
        help: "How far below its parent an unvisited move is thought to be, times the root of the \
               share of the policy that has been visited; or its value, by `FpuStrategy`.",
    },
    Entry {
        name: "FpuStrategyAtRoot",
        kind: Kind::Combo {
            values: || {
                let own = values_of::<FpuStrategy>();
                std::iter::once(SAME.to_owned()).chain(own).collect()
            },
            get: |settings| {
                let strategy = settings.parameters.root_fpu_strategy;
                strategy.map_or_else(|| SAME.to_owned(), name)
            },
            set: |settings, value| {
                settings.parameters.root_fpu_strategy = FpuStrategy::from_str(value, true).ok();
            },
        },
        help: "`FpuStrategy` of the root; `same` leaves it to the two options before, as in Lc0. \
               `absolute` with the value 1 visits every move early.",
    },
    Entry {
        name: "FpuValueAtRoot",
        kind: Kind::Decimal {
            min: -100.0,
            max: 100.0,
            get: |settings| settings.parameters.root_fpu_value,
            set: |settings, value| settings.parameters.root_fpu_value = value,
        },
        help: "`FpuValue` of the root, where `FpuStrategyAtRoot` is not `same`.",
    },
];
