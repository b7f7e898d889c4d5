use super::*;
use crate::backend::metadata::{EncoderSpec, FORWARD, PlanesSpec};
use crate::backend::tests::positions;
use crate::backend::{CodePolicy, DeviceChoice, Precision};
use crate::encode::BOARDS;
use crate::inference::open_by;
use crate::torch::{fused, tiny};

fn backend(search_value: &str, precision: Precision) -> TorchBackend {
    let file = tiny::network(&tiny::honest_metadata(search_value));
    open_by(
        Way::File,
        &file,
        CodePolicy::Checked,
        DeviceChoice::Cpu,
        precision,
        0,
    )
    .unwrap()
}

fn evaluate(backend: &impl Backend, batch: &Batch) -> Evaluations {
    let mut out = Evaluations::default();
    backend.evaluate(batch, &mut out).unwrap();
    assert_eq!(out.len(), batch.len());
    out
}

/// Returns the largest difference between two evaluations in q, d and logits.
fn difference(left: &Evaluations, right: &Evaluations) -> f32 {
    let mut largest = 0f32;
    for index in 0..left.len() {
        let (a, b) = (left.value(index), right.value(index));
        largest = largest.max((a.q - b.q).abs()).max((a.d - b.d).abs());
        for (a, b) in left.logits(index).iter().zip(right.logits(index)) {
            largest = largest.max((a - b).abs());
        }
    }
    largest
}

#[test]
fn batches_on_cuda_are_of_few_sizes_and_half_full_at_least() {
    let sizes: Vec<usize> = cuda_batches().collect();
    assert!(sizes.is_sorted() && sizes.len() < 24, "{sizes:?}");
    assert_eq!(sizes.last(), Some(&CUDA_LARGEST));
    for count in 1..=CUDA_LARGEST {
        let size = sizes.iter().find(|&&size| size >= count).unwrap();
        assert!(size / 2 < count, "{count} in {size}");
    }
}

#[test]
fn a_position_is_worth_the_same_in_every_batch() {
    // The number of positions exceeds the maximum batch size.
    let all = positions(CPU_LARGEST + 6, true);
    for (precision, tolerance) in [(Precision::F32, 1e-5), (Precision::Bf16, 0.02)] {
        let backend = backend("wdl", precision);
        let whole = evaluate(&backend, &all);
        for size in [1, 7, CPU_LARGEST] {
            let mut out = Evaluations::default();
            for start in (0..all.len()).step_by(size) {
                let mut batch = Batch::default();
                for index in start..all.len().min(start + size) {
                    batch.push_from(&all, index);
                }
                let part = evaluate(&backend, &batch);
                for index in 0..part.len() {
                    out.push(part.value(index), part.logits(index).iter().copied());
                }
            }
            let difference = difference(&whole, &out);
            assert!(
                difference <= tolerance,
                "{precision:?} {size}: {difference}"
            );
        }
    }
}

#[test]
fn bf16_comes_near_f32() {
    let batch = positions(64, true);
    let exact = evaluate(&backend("wdl", Precision::F32), &batch);
    let rounded = evaluate(&backend("wdl", Precision::Bf16), &batch);
    let difference = difference(&exact, &rounded);
    assert!(difference > 0.0 && difference < 0.02, "{difference}");
}

/// The network has no layers that can use int8, so the format is that of the other layers.
#[test]
fn networks_run_in_a_format_that_they_have() {
    let batch = positions(20, true);
    let exact = evaluate(&backend("wdl", Precision::F32), &batch);
    let of = |backend: &TorchBackend| backend.properties().format.clone().unwrap();
    let chosen = backend("wdl", Precision::Auto);
    let format = of(&chosen);
    let tried: Vec<Precision> = format.speeds.iter().map(|speed| speed.precision).collect();
    let expected: &[Precision] = match process::prepare().cpu_bf16 {
        true => &[Precision::Bf16, Precision::F32],
        false => &[],
    };
    assert_eq!(tried, expected);
    assert!(
        format
            .speeds
            .iter()
            .all(|speed| speed.evaluations_per_second > 0.0)
    );
    assert_eq!(Precision::from(chosen.dtype), format.precision);
    assert!(difference(&exact, &evaluate(&chosen, &batch)) < 0.02);
    // Within a process, the choice does not change.
    assert_eq!(of(&backend("wdl", Precision::Auto)), format);
    if let Some(int8) = fused::int8() {
        let asked = backend("wdl", Precision::Int8);
        assert_eq!(asked.dtype, int8.dtype.kind.into());
        assert_eq!(of(&asked), Format::only(Way::File, asked.dtype.into()));
    }
}

/// libtorch cannot compute determinants in bf16.
#[test]
fn a_format_that_fails_is_not_chosen() {
    // The program fails immediately, or only on batches larger than those of the warm-up.
    for batch in [0, 2] {
        let forward = format!(
            "
def forward(self, x):
    b = x.size(0)
    p = torch.zeros([b, 1858], dtype=self.heads.dtype) + {batch}
    if b > {batch}:
        p = p + torch.det(self.heads[:2, :2])
    return p, p[:, :3], p[:, 0], p[:, 0], p[:, 0]
"
        );
        let file = tiny::file(&forward, Some(&tiny::honest_metadata("wdl")));
        let new = |precision| {
            open_by(
                Way::File,
                &file,
                CodePolicy::Allowed,
                DeviceChoice::Cpu,
                precision,
                0,
            )
        };
        let in_bf16 = new(Precision::Bf16);
        let inputs = vec![Input::encode(&Game::default()); 3];
        assert!(
            in_bf16
                .and_then(|backend| backend.forward(&inputs))
                .is_err()
        );
        let chosen = new(Precision::Auto).unwrap();
        assert_eq!(chosen.dtype, Kind::Float.into(), "{batch}");
        chosen.forward(&inputs).unwrap();
    }
    // Errors that persist in every format are reported.
    let wrong = tiny::file(
        "def forward(self, x): return x",
        Some(&tiny::honest_metadata("wdl")),
    );
    let (device, auto) = (DeviceChoice::Cpu, Precision::Auto);
    let error = open_by(Way::File, &wrong, CodePolicy::Allowed, device, auto, 0).unwrap_err();
    assert!(matches!(error, NetworkError::Output { .. }), "{error}");
}

#[test]
fn values_are_probabilities_and_follow_the_search_value() {
    let batch = positions(40, true);
    let by_wdl = backend("wdl", Precision::F32);
    let by_q = backend("q", Precision::F32);
    assert!(by_wdl.properties().has_moves_left && !by_wdl.properties().has_error);
    assert!(by_q.properties().has_error);
    let (left, right) = (evaluate(&by_wdl, &batch), evaluate(&by_q, &batch));
    for index in 0..batch.len() {
        for value in [left.value(index), right.value(index)] {
            assert!(value.wdl().iter().all(|part| (0.0..=1.0).contains(part)));
            assert!(value.moves_left > 0.0);
        }
        assert_eq!(left.logits(index), right.logits(index));
        assert_ne!(left.value(index).q, right.value(index).q);
        assert!(right.value(index).error > 0.0);
    }
    // The outputs are the network's own.
    let first = positions(1, true);
    let raw = by_q.forward(first.inputs()).unwrap();
    let raw = |name| raw[by_q.metadata.output(name).unwrap()].double_value(&[0]) as f32;
    let value = evaluate(&by_q, &first).value(0);
    assert_eq!(
        (value.q, value.moves_left, value.error),
        (raw("q"), raw("moves_left"), raw("q_error"))
    );
}

#[test]
fn logits_come_in_the_order_of_the_moves() {
    let batch = positions(3, true);
    let backend = backend("wdl", Precision::F32);
    let policy = &backend.forward(batch.inputs()).unwrap()[0];
    let out = evaluate(&backend, &batch);
    for index in 0..batch.len() {
        for (&mv, &logit) in batch.moves(index).iter().zip(out.logits(index)) {
            assert_eq!(
                policy.double_value(&[index as i64, mv.into()]) as f32,
                logit
            );
        }
    }
}

#[test]
fn threads_do_not_disturb_each_other() {
    let backend = backend("wdl", Precision::F32);
    let batches: Vec<Batch> = (1..9).map(|size| positions(3 * size, true)).collect();
    let alone: Vec<Evaluations> = batches
        .iter()
        .map(|batch| evaluate(&backend, batch))
        .collect();
    std::thread::scope(|scope| {
        for (batch, alone) in batches.iter().zip(&alone) {
            let backend = &backend;
            scope.spawn(move || {
                for _ in 0..20 {
                    assert!(difference(&evaluate(backend, batch), alone) < 1e-5);
                }
            });
        }
    });
}

#[test]
fn a_network_may_read_fewer_scalars() {
    let mut metadata = tiny::honest_metadata("wdl");
    let scalars = ["rule50", "castling_us_kingside"]
        .map(str::to_owned)
        .to_vec();
    let planes = PlanesSpec::new(metadata.planes().unwrap().format, scalars);
    let rows = planes.rows();
    metadata.encoder = EncoderSpec::Planes(planes);
    metadata.methods.get_mut(FORWARD).unwrap().inputs = vec![rows];
    let file = tiny::network(&metadata);
    let fewer = open_by(
        Way::File,
        &file,
        CodePolicy::Checked,
        DeviceChoice::Cpu,
        Precision::F32,
        0,
    )
    .unwrap();
    let batch = positions(1, true);
    let input = torch::rows(batch.inputs(), fewer.words.as_deref()).unwrap();
    assert_eq!(input.size(), [1, BOARDS as i64 + 2]);
    let castling = batch.inputs()[0].words()[BOARDS + 1];
    assert_eq!(input.int64_value(&[0, BOARDS as i64]), 0);
    assert_eq!(input.int64_value(&[0, BOARDS as i64 + 1]) as u64, castling);
    evaluate(&fewer, &batch);
}

#[test]
fn failing_evaluations_are_errors() {
    let backend = backend("wdl", Precision::F32);
    let mut out = Evaluations::default();
    let blind = positions(2, false);
    assert!(matches!(
        backend.evaluate(&blind, &mut out),
        Err(BackendError::Torch(_))
    ));
    backend.evaluate(&Batch::default(), &mut out).unwrap();
    assert!(out.is_empty());

    // These errors occur only with batches larger than those of the warm-up.
    for (forward, message) in [
        (
            "return p, w / 0 * 0, s, s, s",
            "returned NaN or infinite values",
        ),
        (
            "return p / 0, w, s, s, s",
            "returned NaN or infinite values",
        ),
        (
            "return p[1:], w, s, s, s",
            "`policy` has the shape [2, 1858]",
        ),
        ("return p, w, s[1:], s, s", "`moves_left` has the shape [2]"),
        (
            "return p, w[s], s, s, s",
            "the network could not be evaluated",
        ),
    ] {
        let forward = format!(
            "
def forward(self, x):
    b = x.size(0)
    p = torch.zeros([b, 1858], dtype=self.heads.dtype) + self.heads[0, 0]
    w = p[:, :3]
    s = p[:, 0]
    if b > 2:
        {forward}
    return p, w, s, s, s
"
        );
        let file = tiny::file(&forward, Some(&tiny::honest_metadata("wdl")));
        let broken = open_by(
            Way::File,
            &file,
            CodePolicy::Allowed,
            DeviceChoice::Cpu,
            Precision::F32,
            0,
        )
        .unwrap();
        broken.evaluate(&positions(2, true), &mut out).unwrap();
        let error = broken.evaluate(&positions(3, true), &mut out).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn a_network_that_breaks_its_word_is_refused() {
    let refused = |file: &[u8]| {
        let (device, precision) = (DeviceChoice::Cpu, Precision::F32);
        open_by(Way::File, file, CodePolicy::Checked, device, precision, 0).unwrap_err()
    };
    let honest = tiny::honest_metadata("wdl");
    let foreign = tiny::file("def forward(self, x): return x", None);
    assert!(matches!(refused(&foreign), NetworkError::Foreign));
    let narrow = "def forward(self, x): return x, x, x, x, x";
    let narrow = refused(&tiny::file(narrow, Some(&honest)));
    assert!(
        matches!(&narrow, NetworkError::Output { name, .. } if name == "policy"),
        "{narrow}"
    );
    let lonely = "def forward(self, x):\n    row = torch.unsqueeze(torch.select(x, 1, 0), 1)\n    \
                  return torch.expand(row, [-1, 1858])";
    let lonely = refused(&tiny::file(lonely, Some(&honest)));
    assert!(
        matches!(&lonely, NetworkError::Output { name, .. } if name == "wdl"),
        "{lonely}"
    );
    let text = refused(&tiny::file(
        "def forward(self, x): return 'e4'",
        Some(&honest),
    ));
    assert!(matches!(text, NetworkError::Torch(_)), "{text}");

    let mut changed = honest.clone();
    changed.hash = "0".repeat(64);
    assert!(matches!(
        refused(&tiny::network(&changed)),
        NetworkError::Hash
    ));
    let mut changed = honest.clone();
    changed.encoder = EncoderSpec::Planes(PlanesSpec {
        history: 1,
        ..honest.planes().unwrap().clone()
    });
    let error = refused(&tiny::network(&changed)).to_string();
    assert!(error.contains("`encoder.history` is `1`"), "{error}");
}
