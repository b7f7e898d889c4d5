//! The nodes and constants that the converter writes for a network, except for the weights.

use crate::network::Activation;
use crate::network::lc0::{EncoderConfig, Lc0Config, PolicyHeadConfig, SquareEmbedding};
use std::collections::BTreeMap;

/// Constants that only some of several equivalent formulations use: name suffixes and values.
const OPTIONAL: [(&str, f64); 4] = [
    ("/mish/one", 1.0),
    ("/mish/two", 2.0),
    ("/pad/one_vec/w", 1.0),
    ("/selu/selu/mul/w", 1.050_700_987_355_480_5),
];

/// Returns the value of an optional constant.
pub(super) fn optional(config: &Lc0Config, name: &str) -> Option<f64> {
    if let Some(norm) = name.strip_suffix("/var_eps/w") {
        return Some(epsilon(config, norm));
    }
    let mut all = OPTIONAL.iter();
    all.find_map(|(end, number)| name.ends_with(end).then_some(*number))
}

/// Returns the epsilon of a norm.
pub(super) fn epsilon(config: &Lc0Config, norm: &str) -> f64 {
    let is_dense = config
        .attention
        .is_some_and(|body| matches!(body.embedding, SquareEmbedding::Dense { .. }));
    match norm.contains("/smolgen/") || is_dense && !norm.starts_with("/policy/") {
        true => 1e-3,
        false => 1e-6,
    }
}

/// Returns the operators that may compute each output.
pub(super) fn last_operators(config: &Lc0Config) -> Vec<&'static [&'static str]> {
    let policy: &[&str] = match config.policy.heads.values().next() {
        Some(PolicyHeadConfig::Classical { .. }) => &["Add"],
        _ => &["Gather"],
    };
    let value: &[&str] = match config.value.values().any(|head| head.wdl) {
        // A model may omit the softmax.
        true => &["Softmax", "Add"],
        false => &["Tanh"],
    };
    let moves_left = config.moves_left.map(|_| &["Relu"][..]);
    [policy, value].into_iter().chain(moves_left).collect()
}

/// Activations and constants, keyed by the converter's names.
#[derive(Default)]
pub(super) struct Expected {
    pub activations: BTreeMap<String, Activation>,
    pub constants: BTreeMap<String, f64>,
}

impl Expected {
    pub fn of(config: &Lc0Config) -> Expected {
        let mut expected = Expected::default();
        let activation = config.activation;
        if let Some(tower) = config.tower {
            expected.activation("/inputconv", activation);
            for block in 0..tower.blocks {
                expected.activation(&format!("/block{block}/conv1"), activation);
                expected.activation(&format!("/block{block}/conv2"), activation);
                if tower.squeeze.is_some() {
                    expected.activation(&format!("/block{block}/conv2/se"), activation);
                }
            }
        }
        let (policy_activation, policy_feed_forward) = config.policy_activations();
        let smolgen = config.attention.map(|body| body.smolgen_activation);
        let smolgen = smolgen.unwrap_or(Activation::None);
        let head = match config.attention {
            Some(body) => {
                let gain = (2.0 * body.encoder.layers as f64).powf(-0.25);
                let inside = (body.feed_forward_activation, smolgen);
                expected.activation("/attn_body", activation);
                if matches!(body.embedding, SquareEmbedding::Dense { .. }) {
                    expected.feed_forward("/attn_body", inside.0, Some(gain));
                }
                expected.encoder("/encoder", &body.encoder, inside, Some(gain));
                "embed"
            }
            None => "conv",
        };
        match config.policy.heads.values().next() {
            Some(PolicyHeadConfig::Attention { encoder, width, .. }) => {
                expected.activation("/policy/dense1", policy_activation);
                expected.scale("/policy/scale/w", *width);
                if let Some(encoder) = encoder {
                    let inside = (policy_feed_forward, smolgen);
                    expected.encoder("/policy/enc_layer_", encoder, inside, None);
                }
            }
            Some(PolicyHeadConfig::Convolutional { .. }) => {
                expected.activation("/policy/conv1", activation);
            }
            _ => expected.activation("/policy/conv", activation),
        }
        let moves_left = config.moves_left.map(|_| "/mlh");
        for path in ["/value"].into_iter().chain(moves_left) {
            expected.activation(&format!("{path}/{head}"), activation);
            expected.activation(&format!("{path}/dense1"), activation);
        }
        expected
    }

    /// Adds the layers of an encoder. `inside` contains the activations of feed-forward blocks and
    /// of smolgen. The converter omits a `gain` of 1.
    fn encoder(
        &mut self,
        path: &str,
        encoder: &EncoderConfig,
        inside: (Activation, Activation),
        gain: Option<f64>,
    ) {
        for layer in 0..encoder.layers {
            let path = format!("{path}{layer}");
            self.scale(
                &format!("{path}/mha/QK/scale/w"),
                encoder.attention / encoder.heads,
            );
            if encoder.smolgen.is_some() {
                self.activation(&format!("{path}/smolgen/dense1"), inside.1);
                self.activation(&format!("{path}/smolgen/dense2"), inside.1);
            }
            self.constants
                .extend(gain.map(|gain| (format!("{path}/alpha*input/w"), gain)));
            self.feed_forward(&path, inside.0, gain);
        }
    }

    fn feed_forward(&mut self, path: &str, activation: Activation, gain: Option<f64>) {
        self.activation(&format!("{path}/ffn/dense1"), activation);
        self.constants
            .extend(gain.map(|gain| (format!("{path}/ffn/alpha/w"), gain)));
    }

    fn activation(&mut self, place: &str, activation: Activation) {
        if activation != Activation::None {
            self.activations.insert(place.to_owned(), activation);
        }
    }

    fn scale(&mut self, name: &str, width: i64) {
        let scale = 1.0 / (width as f64).sqrt();
        self.constants.insert(name.to_owned(), scale);
    }
}
