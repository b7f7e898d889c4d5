//! A run's metrics as a picture.

use plotters::prelude::*;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Pixels of the picture.
const SIZE: (u32, u32) = (1200, 800);

/// What is drawn: the metric's name in the file, and the panel's caption.
const PANELS: [(&str, &str); 4] = [
    ("policy", "policy: cross-entropy"),
    ("policy_accuracy", "policy: share of moves right"),
    ("q", "q: squared error"),
    ("result", "result: cross-entropy"),
];

/// Colours of the two splits.
const SPLITS: [(&str, RGBColor); 2] = [
    ("train", RGBColor(120, 150, 200)),
    ("validation", RGBColor(200, 60, 40)),
];

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The metrics cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The picture cannot be drawn or written.
    #[error("cannot draw {path}: {reason}")]
    Draw {
        /// The picture.
        path: PathBuf,
        /// What the library said.
        reason: String,
    },
}

/// Draws the metrics of a run (`metrics.jsonl`) as an SVG: losses and accuracy
/// by step, training beside validation.
///
/// # Errors
/// [`PlotError`] if the metrics cannot be read or the picture not be written.
pub fn plot(metrics: &Path, picture: &Path) -> Result<(), PlotError> {
    let text = std::fs::read_to_string(metrics).map_err(|source| PlotError::Read {
        path: metrics.to_owned(),
        source,
    })?;
    let lines: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    draw(&lines, picture).map_err(|error| PlotError::Draw {
        path: picture.to_owned(),
        reason: error.to_string(),
    })
}

/// Points (step, value) of one metric in one split.
fn series(lines: &[Value], split: &str, name: &str) -> Vec<(f64, f64)> {
    lines
        .iter()
        .filter(|line| line["split"] == split)
        .filter_map(|line| Some((line["step"].as_f64()?, line[name].as_f64()?)))
        .collect()
}

fn draw(lines: &[Value], picture: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(picture, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    for (area, (name, caption)) in root.split_evenly((2, 2)).iter().zip(PANELS) {
        let all = SPLITS.map(|(split, colour)| (split, colour, series(lines, split, name)));
        let points = || all.iter().flat_map(|(_, _, points)| points);
        let Some(last) = points().map(|point| point.0).reduce(f64::max) else {
            continue;
        };
        // The first steps are far off the scale of all others.
        let settled = |point: &&(f64, f64)| point.0 >= last / 20.0;
        let values = || points().filter(settled).map(|point| point.1);
        let low = values().reduce(f64::min).unwrap_or(0.0);
        let high = values().reduce(f64::max).unwrap_or(1.0);
        let margin = (high - low).max(1e-6) / 20.0;
        let mut chart = ChartBuilder::on(area)
            .caption(caption, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(30)
            .y_label_area_size(50)
            .build_cartesian_2d(0.0..last.max(1.0), low - margin..high + margin)?;
        chart
            .configure_mesh()
            .x_desc("step")
            .light_line_style(WHITE)
            .draw()?;
        for (split, colour, points) in all.iter() {
            let inside = points
                .iter()
                .filter(|point| (low - margin..=high + margin).contains(&point.1))
                .copied();
            chart
                .draw_series(LineSeries::new(inside, colour.stroke_width(2)))?
                .label(*split)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], *colour));
        }
        chart
            .configure_series_labels()
            .background_style(WHITE)
            .draw()?;
    }
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_splits_are_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let metrics = folder.path().join("metrics.jsonl");
        let lines: Vec<String> = (1..50)
            .map(|step| {
                let split = if step % 5 == 0 { "validation" } else { "train" };
                let loss = 3.0 / f64::from(step);
                format!("{{\"split\":\"{split}\",\"step\":{step},\"policy\":{loss}}}\n")
            })
            .collect();
        std::fs::write(&metrics, lines.concat()).unwrap();
        let picture = folder.path().join("plot.svg");
        plot(&metrics, &picture).unwrap();
        let svg = std::fs::read_to_string(&picture).unwrap();
        assert!(svg.contains("cross-entropy") && svg.matches("<polyline").count() >= 2);
    }

    #[test]
    fn missing_metrics_are_named() {
        let error = plot(Path::new("no-metrics.jsonl"), Path::new("x.svg")).unwrap_err();
        assert!(error.to_string().contains("no-metrics.jsonl"));
    }
}
