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
            get: |settings| settings.player.options.search.cpuct,
            set: |settings, value| settings.player.options.search.cpuct = value,
        },
        help: "Exploration constant of PUCT at nodes with few visits: the factor on the prior. \
               Higher values explore more.",
    },
    Entry {
        name: "CPuctBase",
        kind: Kind::Decimal {
            min: 1.0,
            max: 1e9,
            get: |settings| settings.player.options.search.cpuct_base,
            set: |settings, value| settings.player.options.search.cpuct_base = value,
        },
        help: "Visits at which exploration begins to grow.",
    },
    Entry {
        name: "CPuctFactor",
        kind: Kind::Decimal {
            min: 0.0,
            max: 1000.0,
            get: |settings| settings.player.options.search.cpuct_factor,
            set: |settings, value| settings.player.options.search.cpuct_factor = value,
        },
        help: "Growth of exploration with the logarithm of the visits.",
    },
    Entry {
        name: "RootHasOwnCpuctParams",
        kind: Kind::Check {
            get: |settings| settings.player.options.search.root_has_own_cpuct,
            set: |settings, value| settings.player.options.search.root_has_own_cpuct = value,
        },
        help: "Whether the root uses the next three options instead of the three above, as in Lc0.",
    },
    Entry {
        name: "CPuctAtRoot",
        kind: Kind::Decimal {
            min: 0.0,
            max: 100.0,
            get: |settings| settings.player.options.search.root_cpuct,
            set: |settings, value| settings.player.options.search.root_cpuct = value,
        },
        help: "`CPuct` at the root, if `RootHasOwnCpuctParams` is on.",
    },
    Entry {
        name: "CPuctBaseAtRoot",
        kind: Kind::Decimal {
            min: 1.0,
            max: 1e9,
            get: |settings| settings.player.options.search.root_cpuct_base,
            set: |settings, value| settings.player.options.search.root_cpuct_base = value,
        },
        help: "`CPuctBase` at the root, if `RootHasOwnCpuctParams` is on.",
    },
    Entry {
        name: "CPuctFactorAtRoot",
        kind: Kind::Decimal {
            min: 0.0,
            max: 1000.0,
            get: |settings| settings.player.options.search.root_cpuct_factor,
            set: |settings, value| settings.player.options.search.root_cpuct_factor = value,
        },
        help: "`CPuctFactor` at the root, if `RootHasOwnCpuctParams` is on.",
    },
    Entry {
        name: "FpuStrategy",
        kind: Kind::Combo {
            values: values_of::<FpuStrategy>,
            get: |settings| name(settings.player.options.search.fpu_strategy),
            set: |settings, value| choose(&mut settings.player.options.search.fpu_strategy, value),
        },
        help: "The value assumed for an unvisited move: the parent's, lowered (`reduction`), or \
               a fixed one (`absolute`).",
    },
    Entry {
        name: "FpuValue",
        kind: Kind::Decimal {
            min: -100.0,
            max: 100.0,
            get: |settings| settings.player.options.search.fpu_value,
            set: |settings, value| settings.player.options.search.fpu_value = value,
        },
        help: "How far `reduction` lowers the parent's value, or the value of `absolute`.",
    },
    Entry {
        name: "FpuStrategyAtRoot",
        kind: Kind::Combo {
            values: || {
                let own = values_of::<FpuStrategy>();
                std::iter::once(SAME.to_owned()).chain(own).collect()
            },
            get: |settings| {
                let strategy = settings.player.options.search.root_fpu_strategy;
                strategy.map_or_else(|| SAME.to_owned(), name)
            },
            set: |settings, value| {
                settings.player.options.search.root_fpu_strategy =
                    FpuStrategy::from_str(value, true).ok();
            },
        },
        help: "`FpuStrategy` at the root; `same` uses the two options above.",
    },
    Entry {
        name: "FpuValueAtRoot",
        kind: Kind::Decimal {
            min: -100.0,
            max: 100.0,
            get: |settings| settings.player.options.search.root_fpu_value,
            set: |settings, value| settings.player.options.search.root_fpu_value = value,
        },
        help: "`FpuValue` at the root, unless `FpuStrategyAtRoot` is `same`.",
    },
];
