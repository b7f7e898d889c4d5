//! Formats an ablation as a table.

use super::Row;

/// Returns the rows as a Markdown table with aligned columns. The cell of a metric contains the
/// measured value, the reference value if available, and in parentheses the difference from the
/// first row.
#[must_use]
pub fn table(metrics: &[String], rows: &[Row]) -> String {
    let mut columns = vec![
        column("variant", rows, |row| row.variant.replace('|', r"\|")),
        column("parameters", rows, |row| row.parameters.to_string()),
        column("steps", rows, |row| row.steps.to_string()),
        column("samples", rows, |row| row.samples.to_string()),
        column("minutes", rows, |row| format!("{:.1}", row.seconds / 60.0)),
    ];
    for metric in metrics {
        let number = |row: &Row| row.measured.get(metric).copied();
        columns.push(compared(metric, rows, number));
        let reference = |row: &Row| row.reference.get(metric).copied();
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

/// Returns a metric's column, with the difference from the first row.
fn compared(metric: &str, rows: &[Row], number: impl Fn(&Row) -> Option<f64>) -> Vec<String> {
    let is_share = metric.contains("accuracy");
    let first = rows.first().and_then(&number);
    let mut is_first = true;
    column(metric, rows, |_| String::new())
        .into_iter()
        .take(1)
        .chain(rows.iter().map(|row| {
            let base = if std::mem::take(&mut is_first) {
                None
            } else {
                first
            };
            let Some(value) = number(row) else {
                return "–".to_owned();
            };
            let difference = base.map(|base| value - base);
            if is_share {
                let difference = difference.map(|by| format!(" ({:+.2})", by * 100.0));
                format!("{:.2} %{}", value * 100.0, difference.unwrap_or_default())
            } else {
                let difference = difference.map(|by| format!(" ({by:+.4})"));
                format!("{value:.4}{}", difference.unwrap_or_default())
            }
        }))
        .collect()
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
}
