//! Formats an ablation as a table.

use super::Row;

/// Returns the rows as a Markdown table with aligned columns. The cell of a metric contains the
/// measured value, the reference value if available, and in parentheses the difference from the
/// first row. Means over several seeds are followed by half of their 95 % interval. Differences are
/// taken between runs with the same seed.
pub fn table(metrics: &[String], rows: &[Row]) -> String {
    let mut columns = vec![
        column("variant", rows, |row| row.variant.replace('|', r"\|")),
        column("parameters", rows, |row| row.parameters.to_string()),
        column("steps", rows, |row| row.steps.to_string()),
        column("samples", rows, |row| row.samples.to_string()),
        column("minutes", rows, |row| format!("{:.1}", row.seconds / 60.0)),
    ];
    for metric in metrics {
        let numbers = |row: &Row| row.by_seed.get(metric).cloned();
        columns.push(compared(metric, rows, numbers));
        let reference = |row: &Row| row.reference.get(metric).map(|&number| vec![number]);
        if rows.iter().any(|row| reference(row).is_some()) {
            columns.push(compared(&format!("{metric}, reference"), rows, reference));
        }
    }
    let widths: Vec<usize> = columns
        .iter()
        .map(|cells| {
            cells
                .iter()
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut lines = Vec::new();
    for line in 0..=rows.len() {
        let cells = columns.iter().zip(&widths);
        let cells = cells.map(|(cells, &width)| format!(" {:<width$} |", cells[line]));
        lines.push(format!("|{}\n", cells.collect::<String>()));
        if line == 0 {
            let rules = widths
                .iter()
                .map(|width| format!("{}|", "-".repeat(width + 2)));
            lines.push(format!("|{}\n", rules.collect::<String>()));
        }
    }
    lines.concat()
}

fn column(head: &str, rows: &[Row], cell: impl Fn(&Row) -> String) -> Vec<String> {
    let head = std::iter::once(head.to_owned());
    head.chain(rows.iter().map(cell)).collect()
}

/// Returns a metric's column, given its value for each seed, with the difference from the first
/// row.
fn compared(metric: &str, rows: &[Row], numbers: impl Fn(&Row) -> Option<Vec<f64>>) -> Vec<String> {
    let is_share = metric.contains("accuracy");
    let first = rows.first().and_then(&numbers);
    let (factor, digits, unit) = match is_share {
        true => (100.0, 2, " %"),
        false => (1.0, 4, ""),
    };
    let error = |values: &[f64]| {
        let half = half_width(values)?;
        Some(format!(" ± {:.digits$}", factor * half))
    };
    let mut is_first = true;
    column(metric, rows, |_| String::new())
        .into_iter()
        .take(1)
        .chain(rows.iter().map(|row| {
            let base = if std::mem::take(&mut is_first) {
                None
            } else {
                first.as_ref()
            };
            let Some(values) = numbers(row) else {
                return "–".to_owned();
            };
            let difference = base.map(|base| {
                let by: Vec<f64> = values
                    .iter()
                    .zip(base)
                    .map(|(one, base)| one - base)
                    .collect();
                let error = error(&by).unwrap_or_default();
                format!(" ({:+.digits$}{error})", factor * mean(&by))
            });
            format!(
                "{:.digits$}{}{unit}{}",
                factor * mean(&values),
                error(&values).unwrap_or_default(),
                difference.unwrap_or_default()
            )
        }))
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns half the width of the 95 % interval of the mean, by Student's t-distribution, or `None`
/// if there are fewer than two values.
fn half_width(values: &[f64]) -> Option<f64> {
    /// The 97.5 % quantiles of the t-distribution for 1 to 10 degrees of freedom.
    const T: [f64; 10] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    ];
    let freedom = values.len().checked_sub(1).filter(|&it| it > 0)?;
    // For more degrees of freedom, this is accurate to 0.01.
    let t = T.get(freedom - 1).copied();
    let t = t.unwrap_or(1.96 + 2.5 / freedom as f64);
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(t * (squares / freedom as f64 / values.len() as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_stand_beside_and_differences_in_parentheses() {
        let row = |variant: &str, loss: f64, share: f64| Row {
            variant: variant.to_owned(),
            parameters: 10,
            macs: 20,
            steps: 30,
            samples: 40,
            seconds: 90.0,
            measured: [("policy".to_owned(), loss)].into(),
            by_seed: [("policy".to_owned(), vec![loss])].into(),
            reference: [("policy_accuracy".to_owned(), share)].into(),
        };
        let rows = [row("one", 2.5, 0.5), row("a|b", 2.25, 0.525)];
        let metrics = ["policy".to_owned(), "policy_accuracy".to_owned()];
        let text = table(&metrics, &rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(
            lines[0].contains("| policy_accuracy, reference |"),
            "{text}"
        );
        assert!(lines[2].contains("| 2.5000 "), "{text}");
        for part in [
            r"| a\|b ",
            "| 2.2500 (-0.2500) |",
            "| – ",
            "| 52.50 % (+2.50) ",
        ] {
            assert!(lines[3].contains(part), "{text}");
        }
        let width = lines[0].chars().count();
        assert!(
            lines.iter().all(|line| line.chars().count() == width),
            "{text}"
        );
    }

    #[test]
    fn several_seeds_have_intervals() {
        let row = |losses: [f64; 3]| {
            let of_seed = |loss: f64| Row {
                variant: "it".to_owned(),
                parameters: 10,
                macs: 20,
                steps: 30,
                samples: 40,
                seconds: 90.0 * loss,
                measured: [("policy".to_owned(), loss)].into(),
                by_seed: [("policy".to_owned(), vec![loss])].into(),
                reference: [].into(),
            };
            Row::of_seeds(losses.map(of_seed).to_vec()).unwrap()
        };
        let rows = [row([1.0, 2.0, 3.0]), row([1.25, 2.5, 3.0])];
        assert_eq!((rows[0].measured["policy"], rows[0].seconds), (2.0, 180.0));
        let text = table(&["policy".to_owned()], &rows);
        // 4.303 · 1 / √3, and the interval of the differences 0.25, 0.5 and 0.
        assert!(text.contains("| 2.0000 ± 2.4843 "), "{text}");
        assert!(text.contains("(+0.2500 ± 0.6211)"), "{text}");
        assert!(half_width(&[1.0]).is_none());
        // The 97.5 % quantile for 30 degrees of freedom is 2.042.
        let many: Vec<f64> = (0..31).map(f64::from).collect();
        let deviation = (31.0f64 * 32.0 / 12.0).sqrt();
        let expected = 2.042 * deviation / 31f64.sqrt();
        assert!((half_width(&many).unwrap() - expected).abs() < 0.02);
    }
}
