//! The parameters of a network: names, shapes, initial values and tensors.

mod kept;

use super::size::{Part, Size};
use crate::torch::{ComputeType, fused};
use kept::Frozen;
use std::ops::Index;
use std::sync::atomic::Ordering;
use tch::{Device, Kind, Tensor};

pub(super) use kept::{Packed, Slot};

/// The initial values of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Initial {
    /// All zeros.
    Zeros,
    /// All ones.
    Ones,
    /// Normally distributed with this standard deviation.
    Normal(f64),
    /// The given values plus normally distributed noise with this standard deviation.
    Around(Vec<f32>, f64),
}

/// An optimizer's treatment of a parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParameterGroup {
    /// A matrix between hidden features, updated by Muon or SOAP, with weight decay.
    Hidden,
    /// A matrix that reads inputs or computes outputs, updated by NAdam, with weight decay.
    Outer,
    /// Any other parameter, such as a bias, gain, embedding or convolution, updated by NAdam,
    /// without weight decay.
    #[default]
    Other,
}

/// One parameter of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The parameter's path through the modules, as in a PyTorch state dictionary.
    pub name: String,
    /// The parameter's shape.
    pub shape: Vec<i64>,
    /// The parameter's initial values.
    pub initial: Initial,
    /// The optimizer's treatment.
    pub group: ParameterGroup,
}

impl Parameter {
    /// Returns the number of elements of the parameter.
    pub fn count(&self) -> i64 {
        self.shape.iter().product()
    }
}

/// Collects a network's parameters while its modules are being built.
#[derive(Debug, Default)]
pub(super) struct Builder {
    path: Vec<String>,
    /// Whether the matrices of dense layers are those between hidden features.
    is_hidden: bool,
    parameters: Vec<Parameter>,
    size: Size,
}

impl Builder {
    /// Returns a builder that starts with the parameters of an existing network of this size. The
    /// existing network becomes part of the new one, and its slots remain valid.
    pub fn after(parameters: &[Parameter], size: Size) -> Builder {
        Builder {
            parameters: parameters.to_vec(),
            size,
            ..Builder::default()
        }
    }

    /// Runs `build`, and prefixes the names of its parameters with `name`.
    pub fn scope<T>(
        &mut self,
        name: impl Into<String>,
        build: impl FnOnce(&mut Builder) -> T,
    ) -> T {
        self.path.push(name.into());
        let built = build(self);
        self.path.pop();
        built
    }

    /// Runs `build`, in which the matrices of dense layers, except [`Dense::outer`] layers, are
    /// those between hidden features.
    pub fn hidden<T>(&mut self, build: impl FnOnce(&mut Builder) -> T) -> T {
        let before = std::mem::replace(&mut self.is_hidden, true);
        let built = build(self);
        self.is_hidden = before;
        built
    }

    /// Returns the number of parameters added so far.
    pub fn slots(&self) -> usize {
        self.parameters.len()
    }

    /// Adds a parameter that is not the matrix of a dense layer.
    pub fn add(&mut self, name: &str, shape: &[i64], initial: Initial) -> Slot {
        self.add_to(ParameterGroup::Other, name, shape, initial)
    }

    /// Adds the matrix of a dense layer. `is_outer` is as in [`Dense::is_outer`].
    pub fn add_matrix(
        &mut self,
        name: &str,
        shape: &[i64],
        initial: Initial,
        is_outer: bool,
    ) -> Slot {
        let group = match self.is_hidden && !is_outer {
            true => ParameterGroup::Hidden,
            false => ParameterGroup::Outer,
        };
        self.add_to(group, name, shape, initial)
    }

    fn add_to(
        &mut self,
        group: ParameterGroup,
        name: &str,
        shape: &[i64],
        initial: Initial,
    ) -> Slot {
        let parameter = Parameter {
            name: match self.path.is_empty() {
                true => name.to_owned(),
                false => format!("{}.{name}", self.path.join(".")),
            },
            shape: shape.to_vec(),
            initial,
            group,
        };
        self.size.parameters += parameter.count();
        self.parameters.push(parameter);
        Slot(self.parameters.len() - 1)
    }

    /// Counts multiply–accumulates outside dense layers.
    pub fn count_macs(&mut self, macs: i64) {
        self.count(Part::Other, macs);
    }

    /// Counts multiply–accumulates of a part of the network.
    pub fn count(&mut self, part: Part, macs: i64) {
        self.size.count(part, macs);
    }

    /// Returns the collected parameters and the network's size.
    pub fn finish(self) -> (Vec<Parameter>, Size) {
        (self.parameters, self.size)
    }
}

/// The shape of a dense layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dense {
    pub input: i64,
    pub output: i64,
    pub bias: bool,
    pub gain: f64,
    pub rows: i64,
    /// Whether the layer reads inputs or computes outputs, regardless of where it is built.
    pub is_outer: bool,
}

impl Dense {
    /// Returns a layer with a bias and gain 1 that is applied to each of the 64 tokens.
    pub fn per_token(input: i64, output: i64) -> Dense {
        Dense {
            input,
            output,
            bias: true,
            gain: 1.0,
            rows: 64,
            is_outer: false,
        }
    }

    /// Returns a layer with a bias and gain 1 that is applied to the board as a whole.
    pub fn per_board(input: i64, output: i64) -> Dense {
        Dense::per_token(input, output).with_rows(1)
    }

    /// Returns a layer that is counted as applied to this many rows per position.
    pub fn with_rows(self, rows: i64) -> Dense {
        Dense { rows, ..self }
    }

    pub fn without_bias(self) -> Dense {
        Dense {
            bias: false,
            ..self
        }
    }

    pub fn outer(self) -> Dense {
        Dense {
            is_outer: true,
            ..self
        }
    }

    pub fn with_gain(self, gain: f64) -> Dense {
        Dense { gain, ..self }
    }
}

/// The tensors of a network, in the order of its parameters.
#[derive(Debug)]
pub struct Weights {
    tensors: Vec<Tensor>,
    /// Values derived from the weights, or `None` if the weights are not frozen.
    frozen: Option<Frozen>,
}

impl Weights {
    /// Wraps tensors in the order of the network's parameters.
    pub fn new(tensors: Vec<Tensor>) -> Weights {
        Weights {
            tensors,
            frozen: None,
        }
    }

    /// Returns weights that share memory with these.
    pub(super) fn shared(tensors: &[Tensor]) -> Weights {
        Weights::new(tensors.iter().map(Tensor::shallow_clone).collect())
    }

    /// Returns views into a vector that concatenates all `parameters`. Gradients flow back to the
    /// vector.
    pub fn from_flat(flat: &Tensor, parameters: &[Parameter]) -> Weights {
        let counts: Vec<i64> = parameters.iter().map(Parameter::count).collect();
        let parts = flat.split_with_sizes(counts, 0);
        let shaped = parts
            .iter()
            .zip(parameters)
            .map(|(part, parameter)| part.view(parameter.shape.as_slice()));
        Weights::new(shaped.collect())
    }

    /// Returns the tensors.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Returns weights that share memory with these, except for one replaced tensor.
    pub(super) fn with(&self, slot: Slot, tensor: Tensor) -> Weights {
        let mut weights = Weights::shared(&self.tensors);
        weights.tensors[slot.0] = tensor;
        weights
    }

    /// Converts the weights to another dtype and device.
    pub fn to(&self, kind: Kind, device: Device) -> Weights {
        let tensors = self.tensors.iter();
        Weights::new(
            tensors
                .map(|tensor| tensor.to_device(device).to_kind(kind))
                .collect(),
        )
    }

    /// Returns the dtype that the network computes in.
    pub fn kind(&self) -> Kind {
        self.tensors[0].kind()
    }

    /// Returns a copy of the weights that is frozen for play in this dtype.
    pub(crate) fn frozen(&self, dtype: ComputeType, device: Device) -> Weights {
        let tensors = self.tensors().iter();
        let tensors: Vec<Tensor> = tensors
            .map(|tensor| tensor.detach().to_device(device).to_kind(dtype.kind))
            .collect();
        Weights {
            frozen: Some(Frozen::new(dtype, &tensors[0])),
            tensors,
        }
    }

    /// Returns a value that depends only on weights, one of which is `of`. If the weights are
    /// frozen, the value is computed only once. Otherwise every call computes it, so that gradients
    /// flow.
    pub(super) fn made(
        &self,
        what: &'static str,
        of: Slot,
        make: impl FnOnce() -> Tensor,
    ) -> Tensor {
        match self.frozen.as_ref() {
            Some(frozen) => frozen.made((what, of), make),
            None => make(),
        }
    }

    /// Returns whether the weights are frozen for play.
    pub(super) fn are_frozen(&self) -> bool {
        self.frozen.as_ref().is_some()
    }

    /// Returns whether blocks use kernels with packed weights.
    pub(super) fn are_packed(&self) -> bool {
        self.frozen
            .as_ref()
            .is_some_and(|frozen| frozen.has_kernels)
    }

    /// Returns the packed weights of a block, one of which is `of`. `inputs` are the input widths
    /// of the block's layers. `pack` packs the weights, in int8 if its argument is true. Returns
    /// `None` unless blocks use [packed weights](Weights::are_packed).
    pub(super) fn packed(
        &self,
        what: &'static str,
        of: Slot,
        inputs: &[i64],
        pack: impl FnOnce(bool) -> Tensor,
    ) -> Option<Packed> {
        let frozen = self.frozen.as_ref().filter(|frozen| frozen.has_kernels)?;
        let weights = frozen.made((what, of), || {
            if frozen.int8 && fused::fits_int8(inputs) {
                frozen.multiplies_in_int8.store(true, Ordering::Relaxed);
            }
            pack(frozen.int8)
        });
        let int8 = frozen.int8;
        Some(Packed { weights, int8 })
    }

    /// Returns whether any layer multiplies in int8.
    pub(super) fn multiply_in_int8(&self) -> bool {
        let frozen = self.frozen.as_ref();
        frozen.is_some_and(|frozen| frozen.multiplies_in_int8.load(Ordering::Relaxed))
    }
}

impl Index<Slot> for Weights {
    type Output = Tensor;

    fn index(&self, slot: Slot) -> &Tensor {
        &self.tensors[slot.0]
    }
}

/// Returns fresh values for `parameters`, concatenated into one f32 vector on the CPU. They depend
/// only on the seed of libtorch's generator.
pub(super) fn initialise(parameters: &[Parameter]) -> Tensor {
    let options = (Kind::Float, Device::Cpu);
    let parts: Vec<Tensor> = parameters
        .iter()
        .map(|parameter| match &parameter.initial {
            Initial::Zeros => Tensor::zeros([parameter.count()], options),
            Initial::Ones => Tensor::ones([parameter.count()], options),
            Initial::Normal(deviation) => Tensor::randn([parameter.count()], options) * *deviation,
            Initial::Around(values, deviation) => {
                Tensor::randn([parameter.count()], options) * *deviation
                    + Tensor::from_slice(values)
            }
        })
        .collect();
    Tensor::cat(&parts, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::chessformer::ModelConfig;
    use crate::network::maia3::Maia3Config;
    use crate::network::{Architecture, Chessformer, Maia3};

    /// The names must stay valid, because existing configurations select parameters by name.
    #[test]
    fn hidden_matrices_of_a_chessformer_are_those_of_its_encoder_and_policies() {
        for preset in ["cf-1m-gab", "cf-6m-shaw"] {
            let mut config = ModelConfig::preset(preset).unwrap();
            config.attacks = true;
            let model = Chessformer::new(&config, Device::Cpu).unwrap();
            for parameter in model.parameters() {
                let Parameter { name, group, .. } = parameter;
                let starts = ["encoder.", "policy."].map(|start| name.starts_with(start));
                let outer = ["promotion", "generator"].map(|part| name.contains(part));
                let expected = match name.ends_with(".weight") && parameter.shape.len() == 2 {
                    true if starts.contains(&true) && !outer.contains(&true) => {
                        ParameterGroup::Hidden
                    }
                    true => ParameterGroup::Outer,
                    false => ParameterGroup::Other,
                };
                assert_eq!(*group, expected, "{name}");
            }
        }
    }

    #[test]
    fn maia3s_parameters_are_grouped_whatever_they_are_called() {
        let model = Maia3::new(&Maia3Config::preset("maia3-3m").unwrap(), Device::Cpu).unwrap();
        let group = |name: &str| {
            let mut parameters = model.parameters().iter();
            parameters.find(|it| it.name == name).unwrap().group
        };
        for (name, expected) in [
            ("elo_embedding_low.weight", ParameterGroup::Other),
            ("token_projection.weight", ParameterGroup::Outer),
            ("gab_shared_weight", ParameterGroup::Outer),
            (
                "transformer.layers.0.self_attn.mha.in_proj_weight",
                ParameterGroup::Hidden,
            ),
            (
                "transformer.layers.1.linear2.weight",
                ParameterGroup::Hidden,
            ),
            ("transformer.layers.1.linear2.bias", ParameterGroup::Other),
            ("proj_sq_to.weight", ParameterGroup::Hidden),
            ("promo_bias_proj.weight", ParameterGroup::Outer),
            ("fc_value.weight", ParameterGroup::Outer),
        ] {
            assert_eq!(group(name), expected, "{name}");
        }
    }
}
