//! Search parameters.

use super::wdl::contempt::Contempt;
use crate::tablebase::Tablebase;
use clap::ValueEnum;
use std::time::Duration;

/// The assumed value of an unvisited move (Lc0: FpuStrategy).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FpuStrategy {
    /// The position's value, reduced by `fpu_value` times the square root of the visited policy
    /// mass.
    #[default]
    Reduction,
    /// `fpu_value` itself.
    Absolute,
}

/// The search parameters; the defaults are the engine's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Number of search threads; 0 uses the backend's number.
    pub threads: usize,
    /// Memory of the tree in MiB; anything beyond 32 GiB stays unused.
    pub hash: usize,
    /// Number of lines to report.
    pub multi_pv: usize,
    /// The maximum number of positions that a thread gathers before evaluating them, at most 1,024;
    /// 0 uses the backend's number. Small trees use fewer.
    pub minibatch: usize,
    /// The least time reserved per move for the client and the connection, in milliseconds. More is
    /// reserved while the machine often interrupts the search.
    pub move_overhead: u64,
    /// Seed for sampling moves at a temperature.
    pub seed: u64,
    /// Exploration at a node without visits (Lc0: CPuct).
    pub cpuct: f32,
    /// Visits at which exploration begins to grow (Lc0: CPuctBase).
    pub cpuct_base: f32,
    /// Growth of the exploration with the logarithm of visits (Lc0: CPuctFactor).
    pub cpuct_factor: f32,
    /// How the value of an unvisited move is estimated (Lc0: FpuStrategy).
    pub fpu_strategy: FpuStrategy,
    /// The reduction or the absolute value, depending on `fpu_strategy` (Lc0: FpuValue).
    pub fpu_value: f32,
    /// A draw's value for the side to move at the root, in −1…1 (Lc0: DrawScore).
    pub draw_score: f32,
    /// Rescales the network's results for the players' strength.
    pub contempt: Contempt,
    /// Softmax temperature of the policy (Lc0: PolicyTemperature).
    pub policy_temperature: f32,
    /// Whether a position that has already occurred within the tree counts as a draw (Lc0:
    /// TwoFoldDraws); otherwise only the third occurrence does.
    pub two_fold_draws: bool,
    /// Whether all paths to a position lead to one node, so that each benefits from the others'
    /// visits (KataGo: useGraphSearch).
    pub transpositions: bool,
    /// The number of visits that may collide with leaves under evaluation while a batch is
    /// gathered. This maximum applies once the tree has grown to 145,000 nodes (Lc0:
    /// MaxCollisionVisits).
    pub max_collisions: u32,
    /// The number of visits to leaves of known value while a batch is gathered, as a multiple of
    /// the batch size (Lc0: MaxOutOfOrderEvalsFactor).
    pub out_of_order: f32,
    /// Controls early stops under a clock: the search ends when the number of remaining visits,
    /// divided by this, is less than the best move's lead. 0 uses all of the time (Lc0:
    /// SmartPruningFactor).
    pub smart_pruning: f32,
    /// The c in the lower confidence bound by which the move is chosen. Among moves with enough
    /// visits, the one with the highest q − c/√visits is played; 0 plays the most-visited one
    /// (KataGo: useLcbForSelection, which uses the values' own spread instead of a constant).
    pub lcb_scale: f32,
    /// The visits that a move needs to be chosen by this bound, as a share of the most-visited
    /// move's visits, in 0…1 (KataGo: minVisitPropForLCB, 0.15 there).
    pub lcb_visits: f32,
    /// The number of visits from which a node's priors are corrected by the rules, if the network
    /// has a [correction](crate::tactics::correction) for it; 0 never corrects them.
    pub correction_visits: u32,
    /// Softmax temperature of the policy at the root; 0 uses `policy_temperature`.
    pub root_policy_temperature: f32,
    /// Share of Dirichlet noise in the root's policy, for self-play (Lc0:
    /// DirichletNoiseEpsilon).
    pub noise_epsilon: f32,
    /// The concentration parameter of that noise (Lc0: DirichletNoiseAlpha).
    pub noise_alpha: f32,
    /// The number of root moves among which Gumbel selection distributes a limited number of
    /// visits; 0 uses PUCT at the root (Danihelka et al. 2022).
    pub gumbel_moves: u32,
    /// The weight of values relative to priors in Gumbel selection (the paper's c_scale).
    pub gumbel_scale: f32,
    /// Temperature at which the move is sampled by visits; 0 plays the best move (Lc0:
    /// Temperature).
    pub temperature: f32,
    /// Whether to search for mates outside the tree.
    pub mate_search: bool,
    /// Endgame tablebases to probe (Stockfish: SyzygyPath, Syzygy50MoveRule).
    pub tablebase: Tablebase,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            threads: 0,
            hash: 256,
            multi_pv: 1,
            minibatch: 0,
            move_overhead: 10,
            seed: 0,
            cpuct: 1.745,
            cpuct_base: 38739.0,
            cpuct_factor: 3.894,
            fpu_strategy: FpuStrategy::Reduction,
            fpu_value: 0.33,
            draw_score: 0.0,
            contempt: Contempt::default(),
            policy_temperature: 1.359,
            two_fold_draws: true,
            transpositions: true,
            max_collisions: 80_000,
            out_of_order: 2.4,
            smart_pruning: 1.33,
            lcb_scale: 0.5,
            lcb_visits: 0.3,
            correction_visits: 4,
            root_policy_temperature: 0.0,
            noise_epsilon: 0.0,
            noise_alpha: 0.3,
            gumbel_moves: 0,
            gumbel_scale: 1.0,
            temperature: 0.0,
            mate_search: true,
            tablebase: Tablebase::default(),
        }
    }
}

impl Parameters {
    /// Returns the time reserved per move for the client and the connection.
    pub(crate) fn overhead(&self) -> Duration {
        Duration::from_millis(self.move_overhead)
    }

    /// Returns whether `other` would grow the same tree as these parameters, in the same amount of
    /// memory.
    pub(crate) fn grows_like(&self, other: &Parameters) -> bool {
        let same_growth = Parameters {
            threads: self.threads,
            multi_pv: self.multi_pv,
            minibatch: self.minibatch,
            move_overhead: self.move_overhead,
            seed: self.seed,
            max_collisions: self.max_collisions,
            out_of_order: self.out_of_order,
            smart_pruning: self.smart_pruning,
            lcb_scale: self.lcb_scale,
            lcb_visits: self.lcb_visits,
            temperature: self.temperature,
            contempt: Contempt {
                objectivity: self.contempt.objectivity,
                ..other.contempt.clone()
            },
            ..other.clone()
        };
        *self == same_growth
    }
}
