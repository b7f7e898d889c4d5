//! Pages of explanations, made from the files in the folder `page`.

use super::{Attention, Explanation};
use crate::page::Page;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const BODY: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/script.js");
const PIECES: &str = super::picture::PIECES;

/// Maximum size of a page in bytes, unless the caller requests particular layers.
pub const LARGEST_PAGE: usize = 3_000_000;

/// A page, and the layers that it omits because of the limit.
#[derive(Clone, Debug)]
pub struct RenderedPage {
    /// The page as HTML.
    pub html: String,
    /// For each explanation, the layers whose attention is omitted, numbered from 1.
    pub left_out: Vec<Vec<usize>>,
}

/// Returns a page that shows explanations of one position next to each other. It contains the
/// attention of `layers` (numbered from 1) at 8 bits. If `layers` is `None`, it contains all
/// layers, or as many as fit.
pub fn page(explanations: &[Explanation], layers: Option<&[usize]>) -> RenderedPage {
    let mut shown: Vec<Value> = explanations.iter().map(without_attention).collect();
    let bare = render(explanations, &shown).len();
    let room = LARGEST_PAGE.saturating_sub(bare) / explanations.len().max(1);
    let mut left_out = Vec::new();
    for (explanation, shown) in explanations.iter().zip(&mut shown) {
        let Some(attention) = &explanation.attention else {
            left_out.push(Vec::new());
            continue;
        };
        let count = attention.layers.len();
        let kept = match layers {
            Some(layers) => (1..=count).filter(|layer| layers.contains(layer)).collect(),
            None => spread(count, fitting(attention, room)),
        };
        shown["attention"] = packed(attention, &kept);
        left_out.push((1..=count).filter(|layer| !kept.contains(layer)).collect());
    }
    RenderedPage {
        html: render(explanations, &shown),
        left_out,
    }
}

fn render(explanations: &[Explanation], shown: &[Value]) -> String {
    let mut names: Vec<&str> = explanations.iter().map(|it| it.network.as_str()).collect();
    // The explanations may be those of one network for two ratings.
    names.dedup();
    let page = Page {
        title: &format!("{} – explanation", names.join(" and ")),
        body: &BODY.replace("{{pieces}}", PIECES),
        style: STYLE,
        script: SCRIPT,
    };
    page.render(&json!(shown))
}

/// Returns the data of a page for one explanation, without the attention.
fn without_attention(explanation: &Explanation) -> Value {
    let bare = Explanation {
        attention: None,
        ..explanation.clone()
    };
    serde_json::to_value(bare).expect("plain data")
}

/// Returns the number of layers that fit into the page's remaining bytes.
fn fitting(attention: &Attention, room: usize) -> usize {
    // Number of bytes per map in addition to its contents.
    const AROUND: usize = 64;
    let bytes = |maps: usize| maps * ((64 * 64usize).div_ceil(3) * 4 + AROUND);
    let Some(first) = attention.layers.first() else {
        return 0;
    };
    let heads = first.weights.len();
    let parts = 2 + usize::from(first.bias.is_some());
    let attacks = attention.attacks.as_ref().map_or(0, Vec::len);
    room.saturating_sub(bytes(attacks)) / bytes(parts * heads)
}

/// Returns the numbers of `kept` out of `count` layers, counted from 1. They are evenly spread and
/// include the last layer.
fn spread(count: usize, kept: usize) -> Vec<usize> {
    let kept = kept.clamp(1, count);
    (1..=kept).map(|number| number * count / kept).collect()
}

fn packed(attention: &Attention, kept: &[usize]) -> Value {
    let layers = kept.iter().map(|&number| {
        let layer = &attention.layers[number - 1];
        json!({
            "layer": number,
            "products": packed_maps(&layer.products),
            "bias": layer.bias.as_deref().map(packed_maps),
            "weights": packed_maps(&layer.weights),
        })
    });
    json!({
        "count": attention.layers.len(),
        "heads": attention.layers.first().map_or(0, |layer| layer.weights.len()),
        "attacks": attention.attacks.as_deref().map(packed_maps),
        "layers": layers.collect::<Vec<_>>(),
    })
}

/// Packs maps at 8 bits. Each map has a `low` and a `step`, and a value is low + step · byte.
fn packed_maps(maps: &[Vec<f32>]) -> Value {
    let mut bytes = Vec::new();
    let (mut lows, mut steps) = (Vec::new(), Vec::new());
    for map in maps {
        let low = map.iter().copied().fold(f32::INFINITY, f32::min);
        let high = map.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let step = (high - low) / 255.0;
        // A map whose values are all equal has a step of 0.
        let scale = if step > 0.0 { 1.0 / step } else { 0.0 };
        bytes.extend(
            map.iter()
                .map(|value| ((value - low) * scale).round() as u8),
        );
        lows.push(low);
        steps.push(step);
    }
    json!({ "low": lows, "step": steps, "bytes": STANDARD.encode(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_spread_and_end_with_the_last() {
        assert_eq!(spread(4, 9), [1, 2, 3, 4]);
        assert_eq!(spread(15, 5), [3, 6, 9, 12, 15]);
        assert_eq!(spread(15, 0), [15]);
    }

    #[test]
    fn maps_are_packed_within_half_a_step() {
        let map: Vec<f32> = (0..4096).map(|number| (number as f32).sin()).collect();
        let flat = vec![0.25; 4096];
        let packed = packed_maps(&[map.clone(), flat.clone()]);
        let bytes = STANDARD.decode(packed["bytes"].as_str().unwrap()).unwrap();
        for (number, map) in [map, flat].iter().enumerate() {
            let of = |name: &str| packed[name][number].as_f64().unwrap() as f32;
            let bytes = &bytes[4096 * number..][..4096];
            for (value, &byte) in map.iter().zip(bytes) {
                let found = of("low") + of("step") * f32::from(byte);
                assert!(
                    (found - value).abs() <= 0.51 * of("step"),
                    "{found} {value}"
                );
            }
        }
    }
}
