//! Progress bars for all commands, in a common style. They are drawn only if standard error is a
//! terminal.

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use std::fmt::{Display, Write};
use std::time::Duration;

/// Returns a bar over `length` items of a unit such as "games". If `length` is `None`, the bar has
/// no end.
pub fn bar(length: Option<u64>, unit: &str) -> ProgressBar {
    let count = match length {
        Some(_) => format!("[{{bar:30}}] {{human_pos}}/{{human_len}} {unit}"),
        None => format!("{{human_pos}} {unit}"),
    };
    let bar = length.map_or_else(ProgressBar::no_length, ProgressBar::new);
    styled(bar, &format!("{count}{{msg}}{{rate}}{{left}}"))
}

/// Returns a bar over a number of bytes.
pub fn bytes(length: u64) -> ProgressBar {
    let template = "[{bar:30}] {binary_bytes}/{binary_total_bytes}{msg}{left}";
    styled(ProgressBar::new(length), template)
}

/// Shows a text next to the count.
pub fn say(bar: &ProgressBar, text: impl Display) {
    bar.set_message(format!(", {text}"));
}

/// Formats a rate per second with an appropriate number of digits.
pub fn rate(per_second: f64) -> String {
    match per_second {
        10.0.. => format!("{per_second:.0}/s"),
        1.0.. => format!("{per_second:.1}/s"),
        0.1.. => format!("{per_second:.2}/s"),
        _ => format!("{:.1}/min", 60.0 * per_second),
    }
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(&format!("{{elapsed}} {template}"));
    let style = style.expect("the template is well-formed");
    let style = style
        .with_key("rate", |state: &ProgressState, text: &mut dyn Write| {
            if state.pos() > 0 {
                // Writing to a string cannot fail.
                let _ = write!(text, ", {}", rate(state.per_sec()));
            }
        })
        .with_key("left", |state: &ProgressState, text: &mut dyn Write| {
            if state.pos() > 0 && state.len().is_some_and(|length| length > state.pos()) {
                let _ = write!(text, ", {:#} left", HumanDuration(state.eta()));
            }
        });
    let bar = bar.with_style(style);
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::{ProgressDrawTarget, TermLike};
    use parking_lot::Mutex;
    use std::io::Result;
    use std::sync::Arc;

    /// A terminal that remembers the last line drawn.
    #[derive(Clone, Debug, Default)]
    struct Terminal(Arc<Mutex<String>>);

    impl TermLike for Terminal {
        fn width(&self) -> u16 {
            100
        }
        fn move_cursor_up(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> Result<()> {
            self.0.lock().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> Result<()> {
            self.0.lock().clear();
            Ok(())
        }
        fn flush(&self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_part_is_empty_and_no_rate_is_long() {
        let terminal = Terminal::default();
        let bar = bar(Some(20), "games");
        bar.disable_steady_tick();
        bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(terminal.clone())));
        let shown = || {
            bar.force_draw();
            terminal.0.lock().trim_end().to_owned()
        };
        assert!(shown().ends_with(" 0/20 games"), "{}", shown());
        say(&bar, "3 positions");
        std::thread::sleep(Duration::from_millis(20));
        bar.inc(5);
        assert!(
            shown().contains("] 5/20 games, 3 positions, "),
            "{}",
            shown()
        );
        assert!(shown().contains("/s, ") && shown().ends_with(" left"));
        let rates = [0.02, 0.126, 1.26, 38.2859, 1234.5].map(rate);
        assert_eq!(rates, ["1.2/min", "0.13/s", "1.3/s", "38/s", "1234/s"]);
    }
}
