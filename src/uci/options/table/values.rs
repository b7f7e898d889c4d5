//! What results are worth.

use super::{choose, name, values_of};
use crate::search::ContemptMode;
use crate::uci::options::{Entry, Kind};

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "DrawScore",
        kind: Kind::Decimal {
            min: -1.0,
            max: 1.0,
            get: |settings| settings.player.options.search.draw_score,
            set: |settings, value| settings.player.options.search.draw_score = value,
        },
        help: "Value of a draw for the side to move at the root: below 0 the engine avoids draws, \
               above 0 it seeks them.",
    },
    Entry {
        name: "Contempt",
        kind: Kind::Decimal {
            min: -5000.0,
            max: 5000.0,
            get: |settings| settings.player.options.search.contempt.elo,
            set: |settings, value| settings.player.options.search.contempt.elo = value,
        },
        help: "Elo by which the opponent is assumed to be weaker: higher values avoid draws. \
               Beyond 420 it needs `WDLCalibrationElo`.",
    },
    Entry {
        name: "ContemptMode",
        kind: Kind::Combo {
            values: values_of::<ContemptMode>,
            get: |settings| name(settings.player.options.search.contempt.mode),
            set: |settings, value| choose(&mut settings.player.options.search.contempt.mode, value),
        },
        help: "The side that `Contempt` assumes to be stronger: the side to move (`play`), \
               White, Black, or neither (`disable`).",
    },
    Entry {
        name: "WDLContemptAttenuation",
        kind: Kind::Decimal {
            min: -10.0,
            max: 10.0,
            get: |settings| settings.player.options.search.contempt.attenuation,
            set: |settings, value| settings.player.options.search.contempt.attenuation = value,
        },
        help: "Factor on `Contempt`. Lc0 recommends 1 for realistic values and 0.5 to 0.6 for \
               results.",
    },
    Entry {
        name: "WDLCalibrationElo",
        kind: Kind::Decimal {
            min: 0.0,
            max: 10_000.0,
            get: |settings| settings.player.options.search.contempt.calibration_elo,
            set: |settings, value| settings.player.options.search.contempt.calibration_elo = value,
        },
        help: "Rescales the probabilities of win, draw and loss to a player of this Elo; 0 \
               switches it off.",
    },
    Entry {
        name: "WDLDrawRateTarget",
        kind: Kind::Decimal {
            min: 0.0,
            max: 0.999,
            get: |settings| settings.player.options.search.contempt.draw_rate_target,
            set: |settings, value| settings.player.options.search.contempt.draw_rate_target = value,
        },
        help: "Rescales to this draw rate from equal positions, if `WDLCalibrationElo` is 0; 0 \
               switches it off.",
    },
    Entry {
        name: "WDLDrawRateReference",
        kind: Kind::Decimal {
            min: 0.001,
            max: 0.999,
            get: |settings| settings.player.options.search.contempt.draw_rate_reference,
            set: |settings, value| {
                settings.player.options.search.contempt.draw_rate_reference = value
            },
        },
        help: "The draw rate from equal positions that the network assumes, on which `Contempt` \
               and the rescaling are based.",
    },
    Entry {
        name: "WDLEvalObjectivity",
        kind: Kind::Decimal {
            min: 0.0,
            max: 1.0,
            get: |settings| settings.player.options.search.contempt.objectivity,
            set: |settings, value| settings.player.options.search.contempt.objectivity = value,
        },
        help: "Share of the contempt that is removed from reported scores: 1 reports objective \
               scores, 0 the scores that rank the moves.",
    },
    Entry {
        name: "MovesLeftMaxEffect",
        kind: Kind::Decimal {
            min: 0.0,
            max: 1.0,
            get: |settings| settings.player.options.search.moves_left_max_effect,
            set: |settings, value| settings.player.options.search.moves_left_max_effect = value,
        },
        help: "Largest effect of the expected game length on a move's value: the winner prefers \
               shorter games. 0 switches it off.",
    },
    Entry {
        name: "MovesLeftThreshold",
        kind: Kind::Decimal {
            min: 0.0,
            max: 1.0,
            get: |settings| settings.player.options.search.moves_left_threshold,
            set: |settings, value| settings.player.options.search.moves_left_threshold = value,
        },
        help: "The absolute value of a position, 0 to 1, above which the expected length counts.",
    },
    Entry {
        name: "MovesLeftSlope",
        kind: Kind::Decimal {
            min: 0.0,
            max: 1.0,
            get: |settings| settings.player.options.search.moves_left_slope,
            set: |settings, value| settings.player.options.search.moves_left_slope = value,
        },
        help: "Effect of one ply of difference in length.",
    },
    Entry {
        name: "MovesLeftConstantFactor",
        kind: Kind::Decimal {
            min: -1.0,
            max: 1.0,
            get: |settings| settings.player.options.search.moves_left_constant,
            set: |settings, value| settings.player.options.search.moves_left_constant = value,
        },
        help: "Constant term of the effect's factor, a polynomial in how far the absolute value \
               lies above the threshold.",
    },
    Entry {
        name: "MovesLeftScaledFactor",
        kind: Kind::Decimal {
            min: -2.0,
            max: 2.0,
            get: |settings| settings.player.options.search.moves_left_scaled,
            set: |settings, value| settings.player.options.search.moves_left_scaled = value,
        },
        help: "Linear term of that factor.",
    },
    Entry {
        name: "MovesLeftQuadraticFactor",
        kind: Kind::Decimal {
            min: -2.0,
            max: 2.0,
            get: |settings| settings.player.options.search.moves_left_quadratic,
            set: |settings, value| settings.player.options.search.moves_left_quadratic = value,
        },
        help: "Quadratic term of that factor.",
    },
];
