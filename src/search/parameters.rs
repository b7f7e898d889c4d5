//! What steers the search.

use crate::tablebase::Tablebase;

/// Everything that steers the search; the defaults are the engine's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Threads that walk the tree; 0 asks the backend.
    pub threads: usize,
    /// Memory of the tree, in MiB; of more than 32 GiB the rest stays unused.
    pub hash: usize,
    /// Lines to report.
    pub multi_pv: usize,
    /// Positions a thread gathers before it evaluates them, at most 1,024;
    /// 0 asks the backend.
    pub minibatch: usize,
    /// Time kept back a move for the client and the wire, in milliseconds.
    pub move_overhead: u64,
    /// Seed of the moves drawn at a temperature.
    pub seed: u64,
    /// Exploration at a node without visits (Lc0: CPuct).
    pub cpuct: f32,
    /// Visits at which exploration has begun to grow (Lc0: CPuctBase).
    pub cpuct_base: f32,
    /// Growth of the exploration with the logarithm of visits (Lc0: CPuctFactor).
    pub cpuct_factor: f32,
    /// Reduction of an unvisited move's value below its parent's, times the
    /// square root of the visited policy mass (Lc0: FpuValue).
    pub fpu_value: f32,
    /// Softmax temperature of the policy (Lc0: PolicyTemperature).
    pub policy_temperature: f32,
    /// Whether a position that occurred before within the tree counts as a draw
    /// (Lc0: TwoFoldDraws); otherwise only the third occurrence does.
    pub two_fold_draws: bool,
    /// Whether all ways to a position lead to one node, and what is learnt on one
    /// counts on all (KataGo: useGraphSearch).
    pub transpositions: bool,
    /// Visits that may come to nothing while a batch is gathered, because the
    /// leaf is being evaluated already; reached as the tree grows to 145,000
    /// nodes (Lc0: MaxCollisionVisits).
    pub max_collisions: u32,
    /// Visits to leaves of known value while a batch is gathered, as a multiple
    /// of the batch (Lc0: MaxOutOfOrderEvalsFactor).
    pub out_of_order: f32,
    /// How readily a search under a clock ends early: when the visits still to
    /// come, divided by this, are fewer than the best move's lead. 0 always
    /// thinks to the end (Lc0: SmartPruningFactor).
    pub smart_pruning: f32,
    /// Temperature at which the move is drawn by visits; 0 plays the best
    /// (Lc0: Temperature).
    pub temperature: f32,
    /// Endgame tablebases to look positions up in (Stockfish: SyzygyPath,
    /// Syzygy50MoveRule).
    pub tablebase: Tablebase,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            threads: 0,
            hash: 256,
            multi_pv: 1,
            minibatch: 0,
            move_overhead: 100,
            seed: 0,
            cpuct: 1.745,
            cpuct_base: 38739.0,
            cpuct_factor: 3.894,
            fpu_value: 0.33,
            policy_temperature: 1.359,
            two_fold_draws: true,
            transpositions: true,
            max_collisions: 80_000,
            out_of_order: 2.4,
            smart_pruning: 1.33,
            temperature: 0.0,
            tablebase: Tablebase::default(),
        }
    }
}
