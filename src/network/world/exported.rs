//! The exported program of a world model.
//!
//! As in other networks, `forward` evaluates positions. `represent` returns the latents of
//! positions, `step` the latents after moves, and `predict` the outputs for latents. `step` takes
//! the keys and values of S earlier steps, [blocks, B, squares, S, heads, head width], in the
//! mover's view of the squares. It returns them in the other side's view, with its own key and
//! value appended. In the first step, S is 0. Callers must keep at most context − 1 steps. If
//! latents are a single token, there is one square, which is the same for both sides.

use super::{Past, WorldModel};
use crate::backend::metadata::{DataType, EncoderSpec, STEP, TensorSpec};
use crate::encode::SQUARE_CLASSES;
use crate::network::architecture::{Architecture, Evaluator, NotAnEvaluator, Structure};
use crate::network::evaluator;
use crate::network::exported::ExportedProgram;
use crate::network::outputs::{Output, OutputSet};
use crate::network::parameters::Weights;
use crate::torch::TracedMethod;
use tch::{Device, Kind, Tensor};

/// Numbers of positions and of earlier steps in the traces.
const EXAMPLE: [i64; 2] = [2, 3];

/// Names of the methods `represent` and `predict`.
const REPRESENT: &str = "represent";
const PREDICT: &str = "predict";

impl Architecture for WorldModel {
    fn structure(&self) -> &Structure {
        &self.structure
    }

    fn constants(&self) -> Vec<(&str, &Tensor)> {
        let mut constants = self.encoder.constants();
        constants.extend(self.dynamics.constants());
        constants
    }

    fn into_evaluator(self: Box<Self>) -> Result<Box<dyn Evaluator>, NotAnEvaluator> {
        Ok(self)
    }

    fn exported(&self) -> ExportedProgram<'_> {
        program(self)
    }
}

fn program(world: &WorldModel) -> ExportedProgram<'_> {
    let ExportedProgram {
        encoder,
        mut methods,
    } = evaluator::exported(world);
    let of_positions = methods.pop();
    if let (EncoderSpec::Planes(planes), Some(forward)) = (&encoder, of_positions) {
        let represent = TracedMethod {
            name: REPRESENT,
            inputs: vec![planes.rows()],
            outputs: vec![world.latents("latents")],
            example: forward.example.iter().map(Tensor::shallow_clone).collect(),
            run: Box::new(|weights, rows| {
                vec![world.represent(&Weights::shared(weights), &rows[0])]
            }),
        };
        methods.extend([forward, represent]);
    }
    methods.extend([step(world), predict(world)]);
    ExportedProgram { encoder, methods }
}

fn step(world: &WorldModel) -> TracedMethod<'_> {
    let [boards, past] = EXAMPLE;
    let past = past.min(world.config.context - 1);
    let heads = world.config.encoder.heads;
    let [squares, width] = world.config.latents();
    let blocks = world.config.blocks;
    let cached = |name: &str| {
        let shape = format!("{blocks} B {squares} S {heads} {}", width / heads);
        TensorSpec::new(name, DataType::F32, &shape)
    };
    let zeros = || {
        let shape = [blocks, boards, squares, past, heads, width / heads];
        Tensor::zeros(shape, (Kind::Float, Device::Cpu))
    };
    TracedMethod {
        name: STEP,
        inputs: vec![
            world.latents("latents"),
            TensorSpec::new("moves", DataType::I64, "B"),
            cached("keys"),
            cached("values"),
        ],
        outputs: vec![
            world.latents("next_latents"),
            cached("all_keys"),
            cached("all_values"),
        ],
        example: vec![
            world.zeros(boards),
            Tensor::zeros([boards], (Kind::Int64, Device::Cpu)),
            zeros(),
            zeros(),
        ],
        run: Box::new(|weights, arguments| {
            let [latents, moves, keys, values] = arguments else {
                return Vec::new();
            };
            let weights = Weights::shared(weights);
            // The caller must limit the number of steps to the context.
            let mut past = Past::of(keys, values, i64::MAX);
            let board = world.encoder.board(None);
            let next = world
                .dynamics
                .step(&weights, latents, moves, &mut past, board);
            let [keys, values] = past.stacked();
            vec![next, keys, values]
        }),
    }
}

fn predict(world: &WorldModel) -> TracedMethod<'_> {
    let logits = |name: &str, shape: &str| TensorSpec::new(name, DataType::F32, shape);
    TracedMethod {
        name: PREDICT,
        inputs: vec![world.latents("latents")],
        outputs: vec![
            logits("policy", "B 1858"),
            logits("wdl", "B 3"),
            logits("q", "B"),
            logits("end", "B"),
            logits("legality", "B 1858"),
            logits("board", &format!("B 64 {SQUARE_CLASSES}")),
        ],
        example: vec![world.zeros(EXAMPLE[0])],
        run: Box::new(|weights, latents| {
            let weights = Weights::shared(weights);
            let names = [Output::Policy, Output::Wdl, Output::Q];
            let wanted: OutputSet = names.into_iter().collect();
            let tokens = world.expand(&weights, &latents[0]);
            let mut outputs = world.evaluate(&weights, &tokens, wanted);
            let rules = world.rules(&weights, &tokens);
            let outputs = names.into_iter().filter_map(|name| outputs.take(name));
            outputs
                .chain([rules.end, rules.legality, rules.board])
                .collect()
        }),
    }
}

impl WorldModel {
    /// Returns the spec of latents.
    fn latents(&self, name: &str) -> TensorSpec {
        let [squares, width] = self.config.latents();
        TensorSpec::new(name, DataType::F32, &format!("B {squares} {width}"))
    }

    fn zeros(&self, boards: i64) -> Tensor {
        let [squares, width] = self.config.latents();
        Tensor::zeros([boards, squares, width], (Kind::Float, Device::Cpu))
    }
}
