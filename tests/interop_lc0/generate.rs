//! Files in Lc0's schema with random weights.

use super::protobuf::Message;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The tensors that a file contains in addition to the common ones.
pub struct Shape {
    pub input_format: u64,
    /// `network`, `policy`, `value`, `moves_left` and `default_activation`.
    pub format: [u64; 5],
    /// `smolgen_activation`, `ffn_activation` and `input_embedding`.
    pub body_format: [u64; 3],
    /// Encodings of the layers, in order.
    pub encodings: &'static [u64],
    /// Residual blocks, filters, and width of squeeze and excitation.
    pub tower: Option<(usize, usize, Option<usize>)>,
    /// Whether convolutions have batch norms.
    pub batch_norms: bool,
    pub body: Option<Body>,
    /// Width of the policy's embedding, of queries and keys, and its encoder's layers.
    pub policy: (usize, usize, usize),
    /// Channels of a convolutional or classical policy.
    pub policy_channels: usize,
    /// Whether the file has the heads `optimistic_st`, `soft`, `q` and `st`.
    pub many_heads: bool,
}

#[derive(Clone, Copy)]
pub struct Body {
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub feed_forward: usize,
    /// Compress, hidden, generator.
    pub smolgen: Option<(usize, usize, usize)>,
    /// Features of the board, and width of the embedding's feed-forward layer.
    pub dense: Option<(usize, usize)>,
    pub gates: bool,
}

/// A tower with a convolutional policy, like Maia's.
pub const TOWER: Shape = Shape {
    input_format: 1,
    format: [4, 2, 2, 0, 0],
    body_format: [0; 3],
    encodings: &[0],
    tower: Some((2, 16, Some(4))),
    batch_norms: true,
    body: None,
    policy: (16, 16, 0),
    policy_channels: 80,
    many_heads: false,
};

/// An attention body like BT4's, but small.
pub const BODY: Shape = Shape {
    format: [7, 3, 2, 1, 1],
    body_format: [7, 0, 2],
    tower: None,
    body: Some(Body {
        layers: 2,
        width: 32,
        heads: 4,
        feed_forward: 48,
        smolgen: Some((6, 20, 8)),
        dense: Some((10, 40)),
        gates: true,
    }),
    policy: (24, 28, 0),
    many_heads: true,
    ..TOWER
};

pub struct Generator {
    random: Xoshiro256PlusPlus,
    encodings: &'static [u64],
    next: usize,
}

impl Generator {
    pub fn new(seed: u64, encodings: &'static [u64]) -> Generator {
        Generator {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            encodings,
            next: 0,
        }
    }

    /// Writes a layer of `count` values within `middle` ± `spread`.
    fn layer(&mut self, count: usize, middle: f32, spread: f32) -> Message {
        let encoding = self.encodings[self.next % self.encodings.len()];
        self.next += 1;
        let mut number = || middle + spread * self.random.random_range(-1.0f32..1.0);
        let mut layer = Message::default();
        let mut params = Vec::with_capacity(4 * count);
        for _ in 0..count {
            match encoding {
                0 | 1 => {
                    let theta = (number() - middle + spread) / (2.0 * spread) * 65535.0;
                    params.extend((theta as u16).to_le_bytes());
                }
                2 => params.extend(half::f16::from_f32(number()).to_le_bytes()),
                3 => params.extend(half::bf16::from_f32(number()).to_le_bytes()),
                _ => params.extend(number().to_le_bytes()),
            }
        }
        if encoding <= 1 {
            layer.set_float(1, middle - spread);
            layer.set_float(2, middle + spread);
        }
        if encoding > 0 {
            layer.set_number(4, encoding);
        }
        layer.set_bytes(3, params);
        layer
    }

    /// Writes the weights and, given a tag, the biases of a dense layer.
    fn dense(
        &mut self,
        message: &mut Message,
        weight: u32,
        bias: Option<u32>,
        output: usize,
        input: usize,
    ) {
        let spread = (3.0 / input as f32).sqrt();
        message.set(weight, &self.layer(output * input, 0.0, spread));
        if let Some(bias) = bias {
            message.set(bias, &self.layer(output, 0.0, 0.2));
        }
    }

    fn norm(&mut self, message: &mut Message, gammas: u32, width: usize) {
        message.set(gammas, &self.layer(width, 1.0, 0.3));
        message.set(gammas + 1, &self.layer(width, 0.0, 0.2));
    }

    fn conv(&mut self, output: usize, input: usize, taps: usize, batch_norm: bool) -> Message {
        let mut block = Message::default();
        let spread = (3.0 / (input * taps) as f32).sqrt();
        block.set(1, &self.layer(output * input * taps, 0.0, spread));
        if !batch_norm || self.random.random() {
            block.set(2, &self.layer(output, 0.0, 0.2));
        }
        if batch_norm {
            block.set(3, &self.layer(output, 0.0, 0.2));
            block.set(4, &self.layer(output, 1.0, 0.5));
            if self.random.random() {
                self.norm(&mut block, 5, output);
            }
        }
        block
    }

    fn encoder(
        &mut self,
        width: usize,
        feed_forward: usize,
        heads: usize,
        smolgen: Option<(usize, usize, usize)>,
    ) -> Message {
        let mut mha = Message::default();
        for weight in [1, 3, 5, 7] {
            self.dense(&mut mha, weight, Some(weight + 1), width, width);
        }
        if let Some((compress, hidden, generator)) = smolgen {
            let mut message = Message::default();
            self.dense(&mut message, 1, None, compress, width);
            self.dense(&mut message, 2, Some(3), hidden, 64 * compress);
            self.norm(&mut message, 4, hidden);
            self.dense(&mut message, 6, Some(7), heads * generator, hidden);
            self.norm(&mut message, 8, heads * generator);
            mha.set(9, &message);
        }
        let mut layer = Message::default();
        layer.set(1, &mha);
        self.norm(&mut layer, 2, width);
        layer.set(4, &self.feed_forward(width, feed_forward));
        self.norm(&mut layer, 5, width);
        layer
    }

    fn feed_forward(&mut self, width: usize, wide: usize) -> Message {
        let mut block = Message::default();
        self.dense(&mut block, 1, Some(2), wide, width);
        self.dense(&mut block, 3, Some(4), width, wide);
        block
    }

    fn body(&mut self, weights: &mut Message, body: &Body, input: usize) {
        let Body {
            layers,
            width,
            heads,
            feed_forward,
            smolgen,
            dense,
            gates,
        } = *body;
        let mut input = input;
        if let Some((board, wide)) = dense {
            self.dense(weights, 37, Some(38), 64 * board, 64 * 12);
            self.norm(weights, 39, width);
            weights.set(41, &self.feed_forward(width, wide));
            self.norm(weights, 42, width);
            input += board;
        } else if input == 112 {
            input += 64;
        }
        self.dense(weights, 25, Some(26), width, input);
        if gates {
            weights.set(33, &self.layer(64 * width, 1.0, 0.3));
            weights.set(34, &self.layer(64 * width, 0.0, 0.3));
        }
        if let Some((_, _, generator)) = smolgen {
            self.dense(weights, 35, None, 4096, generator);
        }
        weights.set_number(28, heads as u64);
        for _ in 0..layers {
            weights.set(27, &self.encoder(width, feed_forward, heads, smolgen));
        }
    }

    /// Writes a policy head whose fields have these tags: queries, keys, promotions, encoder
    /// layers, headcount, and the two convolutions.
    fn policy(&mut self, message: &mut Message, tags: [u32; 7], shape: &Shape, width: usize) {
        let [query, key, promotion, encoder, headcount, first, last] = tags;
        let (embedding, wide, layers) = shape.policy;
        match shape.format[1] {
            0 | 1 => message.set(
                last,
                &self.conv(shape.policy_channels, width, 1, shape.batch_norms),
            ),
            2 => {
                message.set(first, &self.conv(width, width, 9, shape.batch_norms));
                message.set(last, &self.conv(shape.policy_channels, width, 9, false));
            }
            _ => {
                self.dense(message, query, Some(query + 1), wide, embedding);
                self.dense(message, key, Some(key + 1), wide, embedding);
                self.dense(message, promotion, None, 4, wide);
                if layers > 0 {
                    message.set_number(headcount, 4);
                }
                for _ in 0..layers {
                    message.set(encoder, &self.encoder(embedding, 20, 4, None));
                }
            }
        }
    }

    fn policy_embedding(
        &mut self,
        message: &mut Message,
        weight: u32,
        shape: &Shape,
        width: usize,
    ) {
        let (output, input) = match shape.format[1] {
            0 | 1 => (1858, 64 * shape.policy_channels),
            2 => return,
            _ => (shape.policy.0, width),
        };
        self.dense(message, weight, Some(weight + 1), output, input);
    }

    /// Writes a value head or a moves-left head whose fields have these tags.
    fn value(
        &mut self,
        message: &mut Message,
        tags: [u32; 4],
        outputs: usize,
        shape: &Shape,
        width: usize,
    ) {
        let [squares, conv, hidden, output] = tags;
        if shape.body.is_some() {
            self.dense(message, squares, Some(squares + 1), 32, width);
        } else {
            message.set(conv, &self.conv(32, width, 1, shape.batch_norms));
        }
        self.dense(message, hidden, Some(hidden + 1), 128, 64 * 32);
        self.dense(message, output, Some(output + 1), outputs, 128);
    }

    fn many_heads(&mut self, weights: &mut Message, shape: &Shape, width: usize) {
        let mut policies = Message::default();
        self.policy_embedding(&mut policies, 1, shape, width);
        for tag in [3, 4, 5] {
            let mut head = Message::default();
            self.policy(&mut head, [3, 5, 7, 8, 9, 10, 11], shape, width);
            policies.set(tag, &head);
        }
        weights.set(45, &policies);
        let mut values = Message::default();
        for (tag, outputs) in [(1, 3), (2, 3), (3, 1)] {
            let mut head = Message::default();
            self.value(&mut head, [1, 11, 3, 5], outputs, shape, width);
            if tag > 1 {
                self.dense(&mut head, 7, Some(8), 1, 128);
                self.dense(&mut head, 9, Some(10), 32, 128);
            }
            values.set(tag, &head);
        }
        weights.set(44, &values);
    }
}

/// Returns an uncompressed file.
pub fn generate(shape: &Shape, seed: u64) -> Vec<u8> {
    let mut generator = Generator::new(seed, shape.encodings);
    let mut weights = Message::default();
    let mut width = 112;
    if let Some((blocks, filters, squeeze)) = shape.tower {
        weights.set(1, &generator.conv(filters, 112, 9, shape.batch_norms));
        for _ in 0..blocks {
            let mut block = Message::default();
            for tag in [1, 2] {
                block.set(tag, &generator.conv(filters, filters, 9, shape.batch_norms));
            }
            if let Some(squeeze) = squeeze {
                let mut unit = Message::default();
                generator.dense(&mut unit, 1, Some(2), squeeze, filters);
                generator.dense(&mut unit, 3, Some(4), 2 * filters, squeeze);
                block.set(3, &unit);
            }
            weights.set(2, &block);
        }
        width = filters;
    }
    if let Some(body) = &shape.body {
        generator.body(&mut weights, body, width);
        width = body.width;
    }
    if shape.many_heads {
        generator.many_heads(&mut weights, shape, width);
    } else {
        generator.policy_embedding(&mut weights, 4, shape, width);
        generator.policy(&mut weights, [17, 19, 22, 21, 24, 11, 3], shape, width);
        let outputs = if shape.format[2] == 2 { 3 } else { 1 };
        generator.value(&mut weights, [29, 6, 7, 9], outputs, shape, width);
    }
    if shape.format[3] == 1 {
        generator.value(&mut weights, [31, 12, 13, 15], 1, shape, width);
    }
    let mut format = Message::default();
    format.set_number(1, shape.input_format);
    format.set_number(2, if shape.format[2] == 2 { 2 } else { 1 });
    for (tag, number) in (3..).zip(shape.format.into_iter().chain(shape.body_format)) {
        if number > 0 {
            format.set_number(tag, number);
        }
    }
    let mut formats = Message::default();
    formats.set_number(1, 1);
    formats.set(2, &format);
    let mut version = Message::default();
    version.set_number(2, 31);
    let mut training = Message::default();
    training.set_number(1, 1234);
    let mut net = Message::default();
    net.set_float(1, f32::from_bits(0x1c0));
    net.set_bytes(2, b"ODbL-1.0".to_vec());
    net.set(3, &version);
    net.set(4, &formats);
    net.set(5, &training);
    net.set(10, &weights);
    net.bytes()
}
