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
            get: |settings| settings.parameters.draw_score,
            set: |settings, value| settings.parameters.draw_score = value,
        },
        help: "What a draw is worth to the side to move: below 0 the engine avoids it, above 0 it seeks \
               it.",
    },
    Entry {
        name: "Contempt",
        kind: Kind::Decimal {
            min: -5000.0,
            max: 5000.0,
            get: |settings| settings.parameters.contempt.elo,
            set: |settings, value| settings.parameters.contempt.elo = value,
        },
        help: "By how many Elo the opponent is taken to be the weaker: with more, positions that are \
               still wide open are thought better, and draws are avoided. Lc0's contempt; beyond 420 \
               only with `WDLCalibrationElo`.",
    },
    Entry {
        name: "ContemptMode",
        kind: Kind::Combo {
            values: values_of::<ContemptMode>,
            get: |settings| name(settings.parameters.contempt.mode),
            set: |settings, value| choose(&mut settings.parameters.contempt.mode, value),
        },
        help: "Who is the stronger by `Contempt`: the side to move, except under `go infinite` \
               (`play`), always White or always Black, or nobody (`disable`).",
    },
    Entry {
        name: "WDLContemptAttenuation",
        kind: Kind::Decimal {
            min: -10.0,
            max: 10.0,
            get: |settings| settings.parameters.contempt.attenuation,
            set: |settings, value| settings.parameters.contempt.attenuation = value,
        },
        help: "What `Contempt` is multiplied by: 1 for realistic values, 0.5 to 0.6 for results, as \
               Lc0 has it.",
    },
    Entry {
        name: "WDLCalibrationElo",
        kind: Kind::Decimal {
            min: 0.0,
            max: 10_000.0,
            get: |settings| settings.parameters.contempt.calibration_elo,
            set: |settings, value| settings.parameters.contempt.calibration_elo = value,
        },
        help: "Rescales the probabilities of win, draw and loss to players of this Elo, the opponent's \
               being less by `Contempt`; 0 does not. Lc0's WDL rescaling.",
    },
    Entry {
        name: "WDLDrawRateTarget",
        kind: Kind::Decimal {
            min: 0.0,
            max: 0.999,
            get: |settings| settings.parameters.contempt.draw_rate_target,
            set: |settings, value| settings.parameters.contempt.draw_rate_target = value,
        },
        help: "The same by the share of draws from equal positions, where no `WDLCalibrationElo` is \
               set; 0 does not.",
    },
    Entry {
        name: "WDLDrawRateReference",
        kind: Kind::Decimal {
            min: 0.001,
            max: 0.999,
            get: |settings| settings.parameters.contempt.draw_rate_reference,
            set: |settings, value| settings.parameters.contempt.draw_rate_reference = value,
        },
        help: "The share of draws from equal positions that the network reckons with, to which \
               `Contempt` and the rescaling are related.",
    },
    Entry {
        name: "WDLEvalObjectivity",
        kind: Kind::Decimal {
            min: 0.0,
            max: 1.0,
            get: |settings| settings.parameters.contempt.objectivity,
            set: |settings, value| settings.parameters.contempt.objectivity = value,
        },
        help: "How much of the contempt is taken out of the scores that are told: with 1 they are \
               objective, with 0 those that rank the moves.",
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
               does not. 0 switches it off; so does a network that tells no length. Lc0's default \
               is 0.0345.",
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
];
