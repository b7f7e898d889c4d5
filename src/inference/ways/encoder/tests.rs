//! The encoder kernel on a mocked GPU, from the GPU's limits to the next way after a failure.

use crate::backend::tests::{assert_same, positions};
use crate::backend::{Backend, CodePolicy, DeviceChoice, Precision, Way};
use crate::inference::candidate::Candidate;
use crate::inference::choice::{Choice, choose};
use crate::inference::fallback::Fallback;
use crate::inference::torch_backend::TorchBackend;
use crate::inference::{Comparison, Planned};
use crate::torch::ComputeType;
use crate::torch::gpu::mock::{MockDriver, Step};
use std::sync::atomic::{AtomicUsize, Ordering};
use tch::{Device, Kind};

const XS: &[u8] = include_bytes!("../../../../nets/tessera-xs.pt");
const F32: ComputeType = ComputeType {
    kind: Kind::Float,
    int8: false,
};
const KERNELS: Candidate = Candidate {
    way: Way::Kernels,
    dtype: F32,
};
const ENCODER: Candidate = Candidate {
    way: Way::Encoder,
    dtype: ComputeType {
        kind: Kind::Half,
        int8: false,
    },
};
/// The steps before the first launch.
const PREPARED: [Step; 3] = [Step::Limits, Step::Compile, Step::Load];

fn planned() -> Planned<'static> {
    Planned::new(XS, CodePolicy::Checked, Device::Cpu, &[F32], Way::Auto).unwrap()
}

fn prepare(candidate: Candidate) -> TorchBackend {
    planned().prepare(candidate).unwrap().unwrap()
}

/// Returns the network on a GPU, and the number of launches that warmed it up.
fn on_gpu(driver: &MockDriver) -> (TorchBackend, usize) {
    let backend = driver.replacing_the_cpu(|| prepare(ENCODER));
    let steps = driver.take_steps();
    let (prepared, launches) = steps.split_at(PREPARED.len());
    assert_eq!(prepared, PREPARED);
    assert!(launches.iter().all(|&step| step == Step::Launch));
    (backend, launches.len())
}

#[test]
fn a_batch_is_one_launch_of_the_compiled_kernel() {
    let driver = MockDriver::new(None);
    let (backend, warm_up) = on_gpu(&driver);
    assert!(warm_up > 0);
    assert_same(&backend, &prepare(ENCODER), &positions(5, true));
    assert_eq!(driver.take_steps(), [Step::Launch]);
}

#[test]
fn a_step_that_fails_leads_to_the_next_way_and_is_remembered() {
    let planned = planned();
    for step in [Step::Limits, Step::Compile, Step::Load, Step::Launch] {
        let driver = MockDriver::new(Some((step, 0)));
        let choice = Choice {
            network: format!("{step:?} fails"),
            device: Device::Cpu,
            candidates: &[ENCODER, KERNELS],
            is_named: false,
        };
        let chosen = || {
            let prepare = |candidate| planned.prepare(candidate);
            let backend = driver.replacing_the_cpu(|| choose(&choice, prepare));
            backend.unwrap().properties().format.clone().unwrap()
        };
        let first = chosen();
        assert_eq!((first.way, first.precision), (Way::Kernels, Precision::F32));
        let [refused] = &first.refused[..] else {
            panic!("{:?}", first.refused)
        };
        assert_eq!(refused.way, Way::Encoder);
        let error = format!("CUDA: {step:?} fails");
        assert!(refused.reason.ends_with(&error), "{}", refused.reason);
        assert_eq!(driver.take_steps().last(), Some(&step));
        assert_eq!(chosen(), first);
        assert_eq!(driver.take_steps(), []);
    }
}

#[test]
fn a_launch_that_fails_during_play_replaces_the_way_once() {
    static REOPENED: AtomicUsize = AtomicUsize::new(0);
    let (_, warm_up) = on_gpu(&MockDriver::new(None));
    let driver = MockDriver::new(Some((Step::Launch, warm_up + 1)));
    let backend = driver.replacing_the_cpu(|| prepare(ENCODER));
    let kernels = prepare(KERNELS);
    let reopen = || {
        REOPENED.fetch_add(1, Ordering::Relaxed);
        Ok(prepare(KERNELS))
    };
    let backend = Fallback::new(backend, Some(Box::new(reopen)));
    let batch = positions(3, true);
    assert_same(&backend, &prepare(ENCODER), &batch);
    assert_eq!(REOPENED.load(Ordering::Relaxed), 0);
    for _ in 0..2 {
        assert_same(&backend, &kernels, &batch);
        assert_eq!(REOPENED.load(Ordering::Relaxed), 1);
    }
    let launches = driver.take_steps().len() - PREPARED.len();
    assert_eq!(launches, warm_up + 2);
}

#[test]
fn a_comparison_states_why_a_way_fails() {
    let driver = MockDriver::new(Some((Step::Compile, 0)));
    let planned = planned();
    let comparison = driver.replacing_the_cpu(|| Comparison::new(&planned, DeviceChoice::Cpu));
    let comparison = comparison.unwrap();
    let (failed, right): (Vec<_>, Vec<_>) = comparison
        .ways
        .iter()
        .partition(|compared| compared.refused.is_some());
    assert_eq!(failed.len(), 1);
    assert_eq!((failed[0].way, failed[0].differences), (Way::Encoder, None));
    assert!(failed[0].speeds.is_empty());
    let has = |way| right.iter().any(|compared| compared.way == way);
    assert!(
        [Way::File, Way::Operators, Way::Kernels]
            .into_iter()
            .all(has)
    );
    let table = comparison.to_string();
    let mut lines = table.lines();
    assert!(
        lines.next().unwrap().starts_with("tessera-xs on "),
        "{table}"
    );
    assert!(
        lines.next().unwrap().ends_with(" batch 1  batch 32"),
        "{table}"
    );
    let line = "encoder    fp16   refused: libtorch cannot run it: CUDA: Compile fails";
    assert!(lines.any(|other| other == line), "{table}");
    assert_eq!(table.lines().count(), 2 + comparison.ways.len());
}
