//! Converts a checkpoint to a network.

use super::Maia3Error;
use crate::interop::pytorch::{Checkpoint, View};
use crate::network::maia3::{GabConfig, Maia3Config, PIECES};
use crate::network::{About, Architecture, Maia3, Network, Parameter, Size, Weights, WeightsError};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tch::{Device, Kind, Tensor};

/// Prefixes that training wrappers (data parallelism, compilation) add to parameter names.
const WRAPPERS: [&str; 2] = ["module.", "_orig_mod."];

/// Old and current names of the position encoding.
const FORMERLY: (&str, &str) = ("smolgen", "gab");

/// The name of the weights that generate attention biases. The names of their copies in every layer
/// end in this name.
const GENERATOR: &str = "gab_shared_weight";
const GENERATOR_COPY: &str = ".self_attn.gab_weight";

/// Name suffixes of parameters that only unsupported networks have, with descriptions.
const UNSUPPORTED: [(&str, &str); 6] = [
    ("abs_pe.bias", "absolute position encodings"),
    ("relative_bias.gate", "relative position biases"),
    ("mha.in_proj_bias", "biases in attention"),
    ("mha.out_proj.bias", "biases in attention"),
    ("norm1.bias", "centred norms in its layers"),
    ("norm2.bias", "centred norms in its layers"),
];

/// Number of clock features per square, in networks that have them: time control, increment and
/// time left.
const CLOCKS: i64 = 3;

/// The licence that is reported for checkpoints, because they do not state one.
const LICENCE: &str = "unknown";

type Views<'a> = BTreeMap<String, View<'a>>;

/// A checkpoint's metadata.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Maia3Summary {
    /// The family, always `maia3`.
    pub family: &'static str,
    /// The name of the published network with the same sizes, from
    /// [`crate::network::maia3::PRESETS`].
    pub published_as: Option<&'static str>,
    /// The network's sizes.
    pub model: Maia3Config,
    /// The network's number of parameters and its cost.
    #[serde(flatten)]
    pub size: Size,
    /// Numbers and strings stored alongside the parameters, such as the training step.
    pub training: Map<String, Value>,
    /// Names of tensors that Maia-3 networks do not use.
    pub ignored: Vec<String>,
}

/// Describes a checkpoint without reading its tensors.
///
/// # Errors
/// [`Maia3Error`], as for [`read`].
pub fn summary(file: &[u8]) -> Result<Maia3Summary, Maia3Error> {
    let (checkpoint, mut views, architecture) = outline(file)?;
    for parameter in architecture.parameters() {
        views.remove(&parameter.name);
    }
    let others = views.into_keys();
    let model = &architecture.config;
    Ok(Maia3Summary {
        family: architecture.config().family(),
        published_as: model.preset_name(),
        size: architecture.size(),
        model: model.clone(),
        training: checkpoint.notes(),
        ignored: others.filter(|name| !is_copy(name)).collect(),
    })
}

/// Reads a checkpoint that was written by `torch.save`. It must be a network's state dictionary, or
/// a dictionary that contains the state dictionary as `model_state_dict`.
///
/// No code in the file is run, and memory use is limited to a small multiple of the file's size.
///
/// # Errors
/// [`Maia3Error`], which names the problem or the unsupported part.
pub fn read(file: &[u8]) -> Result<Network, Maia3Error> {
    let (mut checkpoint, mut views, architecture) = outline(file)?;
    let training = Value::Object(checkpoint.notes());
    let generator = views.get(GENERATOR).cloned();
    let mut reader = Reader {
        checkpoint: &mut checkpoint,
        // A floating-point value takes at least two bytes.
        left: file.len() / 2,
    };
    let mut tensors = BTreeMap::new();
    for Parameter { name, .. } in architecture.parameters() {
        if let Some(view) = views.remove(name) {
            tensors.insert(name.clone(), reader.floats(name, &view)?);
        }
    }
    for (name, view) in views.iter().filter(|(name, _)| is_copy(name)) {
        if Some(view) != generator.as_ref() && reader.floats(name, view)? != tensors[GENERATOR] {
            let own = "a generator of attention biases of its own in each layer";
            return Err(Maia3Error::Unsupported(own.to_owned()));
        }
    }
    Ok(Network {
        weights: Weights::take(architecture.parameters(), tensors)?,
        architecture: Box::new(architecture),
        about: About::imported(training, LICENCE.to_owned()),
    })
}

/// Returns a checkpoint, its tensors, and the architecture inferred from their shapes.
fn outline(file: &[u8]) -> Result<(Checkpoint<'_>, Views<'_>, Maia3), Maia3Error> {
    let checkpoint = Checkpoint::read(file)?;
    let views = named(checkpoint.state_dict()?)?;
    let architecture = Maia3::new(&sizes(&views)?, Device::Cpu)?;
    for Parameter { name, shape, .. } in architecture.parameters() {
        let view = views.get(name);
        let found = view.ok_or_else(|| Maia3Error::Missing(name.clone()))?;
        if &found.shape != shape {
            return Err(Maia3Error::Weights(WeightsError::Shape {
                name: name.clone(),
                found: found.shape.to_vec(),
                expected: shape.clone(),
            }));
        }
    }
    Ok((checkpoint, views, architecture))
}

/// Returns whether a parameter is a copy of the generator.
fn is_copy(name: &str) -> bool {
    name.ends_with(GENERATOR_COPY)
}

/// Returns the tensors under the names that published checkpoints use.
fn named<'a>(state_dict: BTreeMap<&'a str, View<'a>>) -> Result<Views<'a>, Maia3Error> {
    let mut views = BTreeMap::new();
    for (mut name, view) in state_dict {
        while let Some(bare) = WRAPPERS
            .iter()
            .find_map(|&wrapper| name.strip_prefix(wrapper))
        {
            name = bare;
        }
        let (old, new) = FORMERLY;
        let name = name.replace(old, new);
        if views.contains_key(&name) {
            return Err(Maia3Error::Twice(name));
        }
        views.insert(name, view);
    }
    for (end, what) in UNSUPPORTED {
        if views.keys().any(|name| name.ends_with(end)) {
            return Err(Maia3Error::Unsupported(what.to_owned()));
        }
    }
    Ok(views)
}

/// Infers the sizes from the shapes of the parameters. The number of heads is inferred from the
/// generator of attention biases.
fn sizes(views: &Views) -> Result<Maia3Config, Maia3Error> {
    let matrix = |name: &str| match views.get(name).map(|view| &view.shape[..]) {
        None => Err(Maia3Error::Missing(name.to_owned())),
        Some(&[rows, columns]) if rows > 0 && columns > 0 => Ok((rows, columns)),
        Some(found) => Err(Maia3Error::NoMatrix {
            name: name.to_owned(),
            found: found.to_vec(),
        }),
    };
    let (_, rating) = matrix("elo_embedding_low.weight")?;
    let (width, inputs) = matrix("token_projection.weight")?;
    let (_, generator) = matrix(GENERATOR)?;
    let layer = |number: usize, name: &str| format!("transformer.layers.{number}.{name}");
    let has = |name: &str| views.contains_key(name);
    let layers = (0..).take_while(|&number| has(&layer(number, "linear1.weight")));
    let layers = layers.count();
    let (feed_forward, _) = matrix(&layer(0, "linear1.weight"))?;
    let compress = layer(0, "self_attn.sm1.weight");
    let compress = match has(&compress) {
        true => Some(matrix(&compress)?.0),
        false => None,
    };
    let (gab_hidden, _) = matrix(&layer(0, "self_attn.sm2.weight"))?;
    let (generated, _) = matrix(&layer(0, "self_attn.sm3.weight"))?;
    let (hidden, _) = matrix("fc_value_hid.weight")?;
    let features = inputs.saturating_sub(rating.saturating_mul(2));
    match features % PIECES {
        0 => {}
        CLOCKS => return Err(Maia3Error::Unsupported("the clocks as inputs".to_owned())),
        _ => {
            let what = format!("{features} features per square in addition to the ratings");
            return Err(Maia3Error::Unsupported(what));
        }
    }
    Ok(Maia3Config {
        layers: layers as i64,
        width,
        heads: generated / generator,
        feed_forward,
        history: features / PIECES,
        rating,
        hidden,
        gab: GabConfig {
            compress,
            hidden: gab_hidden,
            generator,
        },
    })
}

/// Reads tensors whose total size is limited to the size of the file. The tensors of a network do
/// not share memory, so together they cannot be larger than the file.
struct Reader<'c, 'a> {
    checkpoint: &'c mut Checkpoint<'a>,
    /// Number of elements that may still be read.
    left: usize,
}

impl<'a> Reader<'_, 'a> {
    /// Returns a tensor in f32.
    fn floats(&mut self, name: &str, view: &View<'a>) -> Result<Tensor, Maia3Error> {
        let floating = [Kind::Float, Kind::Half, Kind::BFloat16, Kind::Double];
        if !floating.contains(&view.kind()) {
            return Err(Maia3Error::Integers(name.to_owned()));
        }
        let left = self.left.checked_sub(view.count);
        self.left = left.ok_or(Maia3Error::Shared)?;
        let tensor = self.checkpoint.tensor(view)?.to_kind(Kind::Float);
        if tensor.isfinite().all().int64_value(&[]) == 0 {
            return Err(Maia3Error::NotFinite(name.to_owned()));
        }
        Ok(tensor)
    }
}
