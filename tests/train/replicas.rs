//! Tests replicas, one per thread, that share the batches of a run.

use crate::train::workplace::{assert_same_metrics, metrics, run_on, succeed, workplace};
use tessera::train::Checkpoint;

/// Returns the number with this name in a metrics line.
fn number(line: &serde_json::Value, name: &str) -> f64 {
    line[name].as_f64().unwrap()
}

#[test]
fn replicas_take_the_steps_of_one() {
    let workplace = workplace(4);
    let folder = workplace.path();
    // Neither two nor three replicas can split this batch evenly.
    let sets = ["batch=61", "optimizer.kind=\"sgd\"", "schedule.warmup=0"];
    let checkpoint = |threads: usize| {
        let output = threads.to_string();
        let mut command = run_on(folder, &output, threads);
        for set in sets {
            command.args(["--set", set]);
        }
        succeed(&mut command);
        Checkpoint::read(&folder.join(output)).unwrap()
    };
    let alone = checkpoint(1);
    for threads in [2, 3] {
        let shared = checkpoint(threads);
        let off = (&shared.parameters - &alone.parameters).abs().max();
        assert!(off.double_value(&[]) < 1e-5, "{threads}: {off:?}");
        let lines = metrics(folder, &threads.to_string());
        let expected = metrics(folder, "1");
        assert_eq!(lines.len(), expected.len());
        for (line, expected) in lines.iter().zip(&expected) {
            assert_eq!(line["step"], expected["step"]);
            for name in ["policy", "q", "moves_left", "policy_accuracy"] {
                let (found, expected) = (number(line, name), number(expected, name));
                assert!(
                    (found - expected).abs() < 1e-4,
                    "{name}: {found}, {expected}"
                );
            }
        }
    }
}

#[test]
fn a_run_of_replicas_repeats_and_resumes_bit_for_bit() {
    let workplace = workplace(12);
    let folder = workplace.path();
    let parameters = |output: &str| -> Vec<f32> {
        let checkpoint = Checkpoint::read(&folder.join(output)).unwrap();
        checkpoint.parameters.try_into().unwrap()
    };
    for output in ["whole", "again"] {
        succeed(&mut run_on(folder, output, 3));
    }
    let mut starts = 0;
    loop {
        starts += 1;
        let mut command = run_on(folder, "resumed", 3);
        // Each session takes only a step or two.
        let told = succeed(command.args(["--time", "0.0001m"]));
        if told.starts_with("finished") {
            break;
        }
    }
    assert!(starts > 2, "it was stopped {starts} times");
    for output in ["again", "resumed"] {
        assert_same_metrics(folder, ["whole", output]);
        assert!(parameters(output) == parameters("whole"), "{output}");
    }
}
