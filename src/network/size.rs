//! The size of a network.

use serde::Serialize;

/// The part of a network whose operations include those of a dense layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The encoder's projections and feed-forward blocks, the embedding's feed-forward block and
    /// the main policy head. The paper's figures count only these.
    Main,
    /// All other parts.
    Other,
}

/// The size of a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Size {
    /// Number of parameters.
    pub parameters: i64,
    /// Multiply–accumulates per evaluation in the dense layers of the body, the embedding's
    /// feed-forward block and the main policy head, as counted in the paper.
    pub macs: i64,
    /// Total multiply–accumulates per evaluation, including attention, position encodings, the
    /// embedding and all heads.
    pub macs_total: i64,
}

impl Size {
    pub(super) fn count(&mut self, part: Part, macs: i64) {
        self.macs_total += macs;
        if part == Part::Main {
            self.macs += macs;
        }
    }
}
