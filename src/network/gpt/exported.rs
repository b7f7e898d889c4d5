//! The exported program of a move-token GPT.
//!
//! `forward` reads whole games. `step` reads one more token per game. It takes the keys and values
//! of the S earlier tokens, [layers, B, heads, S, head width], and returns them with those of the
//! new token appended. In the first step, S is 0.

use super::{Gpt, Next, Positions, Sequences};
use crate::backend::metadata::{DataType, EncoderSpec, FORWARD, STEP, TensorSpec};
use crate::network::architecture::{Architecture, Structure};
use crate::network::blocks::KeyValues;
use crate::network::exported::ExportedProgram;
use crate::network::parameters::Weights;
use crate::torch::TracedMethod;
use tch::{Device, Kind, Tensor};

/// Numbers of games, tokens and earlier tokens in the traces.
const EXAMPLE: [i64; 3] = [2, 5, 3];

impl Architecture for Gpt {
    fn structure(&self) -> &Structure {
        &self.structure
    }

    fn constants(&self) -> Vec<(&str, &Tensor)> {
        let parts = self.tokens.parts().map(|parts| ("move_parts", parts));
        let speeds = match &self.positions {
            Positions::Rotary(rotary) => Some(("rotary_speeds", &rotary.0)),
            Positions::Learned(_) => None,
        };
        parts.into_iter().chain(speeds).collect()
    }

    fn exported(&self) -> ExportedProgram<'_> {
        ExportedProgram {
            encoder: EncoderSpec::Moves {
                context: self.config.context as u32,
            },
            methods: vec![forward(self), step(self)],
        }
    }
}

fn forward(gpt: &Gpt) -> TracedMethod<'_> {
    let [games, tokens, _] = EXAMPLE;
    let (conditions, examples) = conditions();
    let mut inputs = vec![TensorSpec::new("tokens", DataType::I64, "B T")];
    inputs.extend(conditions);
    let mut example = vec![integers([games, tokens])];
    example.extend(examples);
    TracedMethod {
        name: FORWARD,
        inputs,
        outputs: next(gpt, "T"),
        example,
        run: Box::new(|weights, arguments| {
            let [tokens, ratings, results] = arguments else {
                return Vec::new();
            };
            let weights = Weights::shared(weights);
            let sequences = Sequences {
                ratings: ratings.shallow_clone(),
                results: results.shallow_clone(),
                ..Sequences::of_tokens(tokens.shallow_clone())
            };
            let features = gpt.features(&weights, &sequences, None);
            returned(gpt.next(&weights, &features))
        }),
    }
}

fn step(gpt: &Gpt) -> TracedMethod<'_> {
    let [games, _, past] = EXAMPLE;
    let (heads, width) = (gpt.config.heads, gpt.config.width / gpt.config.heads);
    let layers = gpt.layers.len() as i64;
    let (conditions, examples) = conditions();
    let cached = |name: &str| {
        let shape = format!("{layers} B {heads} S {width}");
        TensorSpec::new(name, DataType::F32, &shape)
    };
    let mut inputs = vec![
        TensorSpec::new("token", DataType::I64, "B 1"),
        TensorSpec::new("position", DataType::I64, "B 1"),
    ];
    inputs.extend(conditions);
    inputs.extend(["keys", "values"].map(cached));
    let mut example = vec![integers([games, 1]), integers([games, 1])];
    example.extend(examples);
    let zeros = || {
        Tensor::zeros(
            [layers, games, heads, past, width],
            (Kind::Float, Device::Cpu),
        )
    };
    example.extend([zeros(), zeros()]);
    let mut outputs = next(gpt, "1");
    outputs.extend(["all_keys", "all_values"].map(cached));
    TracedMethod {
        name: STEP,
        inputs,
        outputs,
        example,
        run: Box::new(|weights, arguments| {
            let [token, position, ratings, results, keys, values] = arguments else {
                return Vec::new();
            };
            let weights = Weights::shared(weights);
            let sequences = Sequences {
                tokens: token.shallow_clone(),
                positions: position.shallow_clone(),
                ratings: ratings.shallow_clone(),
                results: results.shallow_clone(),
                padding: None,
            };
            let mut earlier = Concatenated {
                earlier: [keys.unbind(0), values.unbind(0)],
                all: [Vec::new(), Vec::new()],
            };
            let table = gpt.tokens.table(&weights);
            let features = gpt.read(&weights, &table, &sequences, Some(&mut earlier));
            let all = earlier.all.map(|layers| Tensor::stack(&layers, 0));
            let mut outputs = returned(gpt.next(&weights, &features));
            outputs.extend(all);
            outputs
        }),
    }
}

/// A cache whose keys and values are inputs and outputs of the exported program.
struct Concatenated {
    /// Keys and values of each layer, [B, heads, S, head width].
    earlier: [Vec<Tensor>; 2],
    /// The keys and values in `earlier`, followed by those of the new token.
    all: [Vec<Tensor>; 2],
}

impl KeyValues for Concatenated {
    /// Returns 1 even in the first step, so that the trace contains no causal mask: the new token
    /// attends to all tokens.
    fn past(&self) -> i64 {
        1
    }

    fn extend(&mut self, layer: usize, key: &Tensor, value: &Tensor) -> (Tensor, Tensor) {
        let mut joined = |index: usize, new: &Tensor| {
            let all = Tensor::cat(&[&self.earlier[index][layer], new], 2);
            self.all[index].push(all.shallow_clone());
            all
        };
        (joined(0, key), joined(1, value))
    }

    fn grow(&mut self, _new: i64) {}
}

/// Returns the inputs that describe games apart from their tokens, with examples.
fn conditions() -> ([TensorSpec; 2], [Tensor; 2]) {
    let games = EXAMPLE[0];
    let specs = [
        TensorSpec::new("ratings", DataType::F32, "B 1 2"),
        TensorSpec::new("results", DataType::I64, "B 1"),
    ];
    let ratings = Tensor::full([games, 1, 2], 1500.0, (Kind::Float, Device::Cpu));
    (specs, [ratings, integers([games, 1])])
}

/// Returns the specs of the next-token outputs.
fn next(gpt: &Gpt, tokens: &str) -> Vec<TensorSpec> {
    let logits = |name: &str, classes: usize| {
        TensorSpec::new(name, DataType::F32, &format!("B {tokens} {classes}"))
    };
    let outcome = gpt.outcome.as_ref().map(|_| logits("outcome", 3));
    let tokens = logits("next", gpt.vocabulary.size());
    [tokens].into_iter().chain(outcome).collect()
}

fn returned(next: Next) -> Vec<Tensor> {
    [next.tokens].into_iter().chain(next.outcome).collect()
}

fn integers(shape: [i64; 2]) -> Tensor {
    Tensor::zeros(shape, (Kind::Int64, Device::Cpu))
}
