//! `tessera explain --study`: attention over a file of positions, as tables.

use super::explain::save;
use crate::cli::output::print;
use anyhow::Context;
use std::fmt::Write;
use std::path::Path;
use tessera::eval::read_text;
use tessera::explain::{
    AttentionSummary, PartSummary, RelationScore, Study, read_positions, study,
};
use tessera::network::Network;
use tessera::output;

/// Relations of a head that the table names.
const RELATIONS: usize = 2;

/// Prints the tables of a study, and writes it as JSON where that was asked for.
pub fn run(network: &Network, positions: &Path, json: Option<&Path>) -> anyhow::Result<()> {
    let shown = positions.display();
    let text = read_text(positions)?;
    let games = read_positions(&text).with_context(|| shown.to_string())?;
    let study = study(network, &games)?;
    if let Some(path) = json {
        save(path, serde_json::to_string(&study)? + "\n")?;
    }
    let tables = tables(&study);
    match json {
        Some(path) => Ok(output::announce(path, tables.trim_end())?),
        None => print(&tables),
    }
}

fn tables(study: &Study) -> String {
    let mut text = format!("{}, {} positions\n\n", study.network, study.positions);
    text += "| part of the logits | correlation between positions | across queries | share of variance |\n";
    text += "|---|---|---|---|\n";
    let parts = parts(&study.all);
    let variance: f64 = parts.iter().map(|(_, part)| part.variance).sum();
    for (name, part) in parts {
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {:.1} % |",
            correlation(part.between_positions),
            correlation(part.across_queries),
            100.0 * part.variance / variance.max(f64::MIN_POSITIVE)
        );
    }
    text += "\n| layer | entropy, nats |";
    for (name, _) in self::parts(&study.all) {
        let _ = write!(text, " {name}: between, across |");
    }
    text += "\n|---|---|";
    text += &"---|".repeat(self::parts(&study.all).len());
    text += "\n";
    for (layer, summary) in (1..).zip(&study.layers) {
        let _ = write!(text, "| {layer} | {:.2} |", summary.entropy);
        text += &compared(summary);
    }
    text += "\n| layer, head | entropy, nats | looks along | score |\n|---|---|---|---|\n";
    for head in &study.heads {
        let mut best: Vec<&RelationScore> = head.relations.iter().collect();
        best.sort_by(|a, b| b.score.total_cmp(&a.score));
        best.truncate(RELATIONS);
        let names = best.iter().map(|it| name(it)).collect::<Vec<_>>();
        let scores = best.iter().map(|it| format!("{:.0} %", 100.0 * it.score));
        let _ = writeln!(
            text,
            "| {}, {} | {:.2} | {} | {} |",
            head.layer,
            head.head,
            head.summary.entropy,
            names.join(", "),
            scores.collect::<Vec<_>>().join(", ")
        );
    }
    text
}

/// The parts of the logits that a network has.
fn parts(summary: &AttentionSummary) -> Vec<(&'static str, PartSummary)> {
    let parts = [
        ("dot product", Some(summary.products)),
        ("position", summary.position),
        ("attacks", summary.attacks),
    ];
    let parts = parts.into_iter();
    parts
        .filter_map(|(name, part)| Some((name, part?)))
        .collect()
}

/// The rest of a layer's line.
fn compared(summary: &AttentionSummary) -> String {
    let mut text = String::new();
    for (_, part) in parts(summary) {
        let pair = [part.between_positions, part.across_queries].map(correlation);
        let _ = write!(text, " {} |", pair.join(", "));
    }
    text + "\n"
}

fn correlation(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"))
}

/// A relation's name, in words.
fn name(score: &RelationScore) -> String {
    let name = serde_json::to_value(score.relation).unwrap_or_default();
    name.as_str().unwrap_or_default().replace('_', " ")
}
