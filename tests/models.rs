//! Tests the search with loom, under the orders of events that the memory model allows.
//!
//! The search's files are compiled a second time, with loom's types instead of those in
//! `src/search/sync.rs`. loom runs each model repeatedly. In each run, the threads are interrupted
//! at different points, and read different values wherever the memory orderings allow it. In
//! practice, a few threads and a few interruptions reveal almost all bugs (Musuvathi & Qadeer,
//! "Iterative Context Bounding", 2007).
//!
//! If one of the threads only reads, it must be the spawned one: loom does not run a reader before
//! a writer if that writer first reads the same word. loom treats `SeqCst` as `AcqRel`, except in
//! fences.

#[allow(unused)]
#[path = "../src/search"]
mod search {
    pub(crate) mod parameters {
        pub(crate) use tessera::search::{FpuStrategy, Parameters};
    }
    mod prove {
        pub(crate) use tessera::search::{Attack, Goal, MAX_MATE_PLIES, ProofNumbers, Prover};
    }
    pub(crate) mod wdl {
        pub(crate) mod rescaling;
    }

    mod clock;
    mod descent;
    mod environment;
    mod mates;
    mod memory;
    mod numeric;
    mod root;
    mod shared;
    #[path = "../../tests/models/sync.rs"]
    mod sync;
    mod tree;

    #[path = "../../tests/models/edges.rs"]
    pub(crate) mod edge_models;
    #[path = "../../tests/models/proofs.rs"]
    pub(crate) mod proof_models;
    #[path = "../../tests/models/table.rs"]
    pub(crate) mod table_models;
    #[path = "../../tests/models/threads.rs"]
    pub(crate) mod thread_models;
}

use libtest_mimic::{Arguments, Trial};
#[allow(unused)]
use tessera::{backend, chess, encode, play, softmax, tablebase, tactics};

/// Runs a model with at most this many interruptions of its threads.
fn check(interruptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(interruptions);
    builder.max_branches = 10_000;
    builder.check(model);
}

/// Defines named models.
macro_rules! trials {
    ($($module:ident::$model:ident),* $(,)?) => {
        vec![$(Trial::test(
            concat!(stringify!($module), "::", stringify!($model)),
            || {
                search::$module::$model();
                Ok(())
            },
        )),*]
    };
}

fn main() {
    let trials = trials![
        table_models::an_entry_is_seen_with_its_node,
        table_models::no_entry_is_mixed_up_while_it_grows,
        edge_models::an_edge_is_seen_with_its_move,
        edge_models::two_threads_make_the_same_edge_once,
        edge_models::a_correction_and_a_new_edge_do_not_mix,
        edge_models::the_first_link_wins,
        edge_models::a_node_is_opened_once_and_whole,
        edge_models::a_report_shows_each_move_at_one_moment,
        proof_models::the_last_two_proofs_of_a_node_meet,
        proof_models::the_shortest_known_mate_is_kept,
        thread_models::all_visits_are_made,
        thread_models::a_failure_ends_all_threads,
        thread_models::a_panic_ends_all_threads,
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
