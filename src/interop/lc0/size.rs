//! How large a network is.

use super::config::Lc0Config;
use super::fields::visit_fields;
use super::schema::Weights;
use serde::Serialize;

/// How large a network is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lc0Size {
    /// Learned numbers, batch norms folded.
    pub parameters: i64,
    /// Multiply–accumulates of an evaluation by the body's convolutions and
    /// dense layers, its embedding's feed-forward block and the first policy.
    pub macs: i64,
    /// Multiply–accumulates of everything: attention products, smolgen,
    /// embedding and all heads too.
    pub macs_total: i64,
}

impl Lc0Config {
    /// How large such a network is.
    #[must_use]
    pub fn size(&self) -> Lc0Size {
        let policy = self
            .policy
            .heads
            .keys()
            .next()
            .map_or("", |head| head.name());
        let main = [
            "input.",
            "body.",
            "encoder.",
            "embedding.feed_forward.",
            "policy.embedding.",
            &format!("policy.{policy}."),
        ];
        let mut size = Lc0Size::default();
        let counted = visit_fields(self, &mut Weights::default(), &mut |field, _| {
            let count: i64 = field.shape.iter().product();
            size.parameters += count;
            size.macs_total += count * field.rows;
            let is_main = main.iter().any(|part| field.name.starts_with(part));
            if is_main && !field.name.contains(".smolgen.") {
                size.macs += count * field.rows;
            }
            Ok(())
        });
        debug_assert!(counted.is_ok());
        if let Some(body) = &self.attention {
            size.macs_total += body.encoder.layers * 2 * 64 * 64 * body.encoder.attention;
        }
        size
    }
}
