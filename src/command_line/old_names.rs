//! Names from an earlier release, which remain valid for one more release.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};

/// A name from an earlier release.
#[derive(Clone, Copy, Debug)]
pub struct OldName {
    /// The command to which it belongs, under its current name.
    pub command: &'static str,
    /// The old name of the command, or of an option including its dashes.
    pub old: &'static str,
    /// The current form.
    pub now: Now,
}

impl OldName {
    /// Creates an entry for a name of `command` and its current form.
    #[must_use]
    pub const fn new(command: &'static str, old: &'static str, now: Now) -> OldName {
        OldName { command, old, now }
    }

    /// Returns whether a current option also has this name, but takes another kind of value.
    pub(super) fn keeps_its_name(&self) -> bool {
        match self.now {
            Now::Time(option, _) => option == self.old,
            Now::List(_) | Now::WordsBeforeNumber(_) | Now::WordsBeforeValue(_) => true,
            _ => false,
        }
    }
}

/// The current form of an old name.
#[derive(Clone, Copy, Debug)]
pub enum Now {
    /// The command itself has been renamed.
    Command,
    /// The name is replaced with these words, which its value follows.
    Words(&'static [&'static str]),
    /// The same, but only if the value is a whole number; other values belong to a current option.
    WordsBeforeNumber(&'static [&'static str]),
    /// The same, but only if there is a value, because the current option is a switch.
    WordsBeforeValue(&'static [&'static str]),
    /// An option for a time. The old option took a number without a unit, which is in this unit.
    Time(&'static str, &'static str),
    /// The value is now the command's first argument.
    First,
    /// The value is now the command's last argument.
    Last,
    /// An option of the same name, whose values used to be separated by spaces. They contain this
    /// text, and are now separated by commas.
    List(&'static str),
}

/// Replaces old names with their current form. Returns one line for each, which states the current
/// form.
pub(super) fn translate(arguments: &mut Vec<OsString>, old_names: &[OldName]) -> Vec<String> {
    let mut notes = Vec::new();
    let Some(command) = arguments.get(1).and_then(|it| it.to_str()) else {
        return notes;
    };
    let is_renamed = |it: &&OldName| matches!(it.now, Now::Command) && it.old == command;
    if let Some(renamed) = old_names.iter().find(is_renamed) {
        notes.push(note(&[command.into()], &[renamed.command.into()]));
        arguments[1] = renamed.command.into();
    }
    let command = arguments[1].clone();
    let own = old_names.iter().filter(|it| command == it.command);
    let own: Vec<&OldName> = own.collect();
    let mut translation = Translation {
        left: arguments.split_off(2).into(),
        done: std::mem::take(arguments),
        last: Vec::new(),
        notes,
    };
    while let Some(word) = translation.left.pop_front() {
        if word == "--" {
            translation.left.push_front(word);
            break;
        }
        translation.word(word, &own);
    }
    arguments.append(&mut translation.done);
    arguments.extend(translation.left);
    arguments.append(&mut translation.last);
    translation.notes
}

/// A command line that is being translated.
struct Translation {
    /// The arguments that remain to be translated.
    left: VecDeque<OsString>,
    done: Vec<OsString>,
    /// Arguments to append at the end.
    last: Vec<OsString>,
    notes: Vec<String>,
}

impl Translation {
    fn word(&mut self, word: OsString, own: &[&OldName]) {
        let (name, attached) = split(&word);
        let found = own.iter().find(|it| name == it.old);
        let Some(now) = found.map(|it| it.now) else {
            return self.done.push(word);
        };
        let has_own_value = attached.is_some();
        if let Some(value) = attached {
            self.left.push_front(value);
        }
        let name = OsString::from(name);
        let value = self
            .left
            .front()
            .filter(|it| has_own_value || !is_option(it));
        let value = value.cloned();
        let is_number = |value: &OsString| value.to_str().is_some_and(is_number);
        let with = |words: &[&str]| -> Vec<OsString> { words.iter().map(OsString::from).collect() };
        match (now, value) {
            (Now::Words(words), _) => {
                // The value, if there is one, is translated with the remaining arguments.
                let words = with(words);
                self.notes.push(note(&[name], &words));
                self.done.extend(words);
                self.take_value(has_own_value);
            }
            (Now::WordsBeforeNumber(words), Some(value)) if is_number(&value) => {
                self.replace(name, value, with(words));
            }
            (Now::WordsBeforeValue(words), Some(value)) => {
                self.replace(name, value, with(words));
            }
            (Now::Time(option, unit), Some(value)) if is_number(&value) => {
                let mut time = value.clone();
                time.push(unit);
                self.left.pop_front();
                let new = [option.into(), time];
                self.notes.push(note(&[name, value], &new));
                self.done.extend(new);
            }
            (Now::Time(option, _), _) => {
                if name != option {
                    self.notes.push(note(&[name], &[option.into()]));
                }
                self.done.push(option.into());
                self.take_value(has_own_value);
            }
            (Now::First, Some(value)) => {
                self.left.pop_front();
                let new = [self.done[1].clone(), value.clone()];
                self.notes.push(note(&[name, value.clone()], &new));
                self.done.insert(2, value);
            }
            (Now::Last, Some(value)) => {
                self.left.pop_front();
                let old = [name, value.clone()];
                self.notes.push(note(&old, &old[1..]));
                self.last.push(value);
            }
            (Now::List(part), Some(first)) => {
                self.left.pop_front();
                let mut values = vec![first];
                let is_more = |it: &OsString| {
                    !is_option(it) && it.to_str().is_some_and(|it| it.contains(part))
                };
                while let Some(value) = self.left.pop_front_if(|it| is_more(it)) {
                    values.push(value);
                }
                let list = values.join(OsStr::new(","));
                if values.len() > 1 {
                    values.insert(0, name.clone());
                    self.notes
                        .push(note(&values, &[name.clone(), list.clone()]));
                }
                self.done.extend([name, list]);
            }
            // The word is not an old name here, or it lacks a value; the parser reports the error.
            _ => {
                self.done.push(name);
                self.take_value(has_own_value);
            }
        }
    }

    /// Takes a value that must not be parsed as an option.
    fn take_value(&mut self, is_value: bool) {
        if is_value {
            self.done.extend(self.left.pop_front());
        }
    }

    fn replace(&mut self, name: OsString, value: OsString, mut words: Vec<OsString>) {
        self.left.pop_front();
        words.push(value.clone());
        self.notes.push(note(&[name, value], &words));
        self.done.extend(words);
    }
}

/// Returns the name of an option and the value attached to it: `--name=value` or `-nvalue`.
fn split(word: &OsStr) -> (&str, Option<OsString>) {
    let Some(text) = word.to_str() else {
        return ("", None);
    };
    match text.split_once('=') {
        Some((name, value)) if name.starts_with("--") => (name, Some(value.into())),
        _ if !text.starts_with("--") && text.starts_with('-') && text.is_char_boundary(2) => {
            let (name, value) = text.split_at(2);
            (name, (!value.is_empty()).then(|| value.into()))
        }
        _ => (text, None),
    }
}

fn is_option(word: &OsStr) -> bool {
    let text = word.to_string_lossy();
    text.len() > 1 && text.starts_with('-')
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok() && text.bytes().all(|it| it.is_ascii_digit() || it == b'.')
}

fn note(old: &[OsString], new: &[OsString]) -> String {
    let [old, new] = [old, new].map(|words| words.join(OsStr::new(" ")));
    format!(
        "note: write `{}` in place of `{}`, which the next release will not know",
        new.display(),
        old.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: [OldName; 9] = [
        OldName::new("validate", "eval", Now::Command),
        OldName::new("validate", "--config", Now::Last),
        OldName::new("run", "--config", Now::First),
        OldName::new("run", "--minutes", Now::Time("--time", "m")),
        OldName::new("run", "--timeout", Now::Time("--timeout", "s")),
        OldName::new("write", "-g", Now::Words(&["--limit"])),
        OldName::new("write", "--games", Now::WordsBeforeNumber(&["--limit"])),
        OldName::new("write", "--json", Now::WordsBeforeValue(&["--json-file"])),
        OldName::new("write", "--nets", Now::List("=")),
    ];

    /// Returns the translation of a command line and the notes about it.
    fn translated(line: &str) -> (String, Vec<String>) {
        let mut words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let notes = translate(&mut words, &OLD);
        (words.join(OsStr::new(" ")).into_string().unwrap(), notes)
    }

    #[test]
    fn old_names_are_written_as_today() {
        for (line, expected, count) in [
            (
                "train run a.toml --time 5m",
                "train run a.toml --time 5m",
                0,
            ),
            ("train run -o x --config a.toml", "train run a.toml -o x", 1),
            ("train run --config=a.toml x", "train run a.toml x", 1),
            (
                "train run --minutes 5 --timeout 60",
                "train run --time 5m --timeout 60s",
                2,
            ),
            ("train run --minutes=0.5", "train run --time 0.5m", 1),
            ("train run --timeout 60s", "train run --timeout 60s", 0),
            ("train run --minutes 2h", "train run --time 2h", 1),
            (
                "train eval r --config c --json",
                "train validate r --json c",
                2,
            ),
            ("tessera write -g 3", "tessera write --limit 3", 1),
            ("tessera write -g3", "tessera write --limit 3", 1),
            ("tessera write --games 5", "tessera write --limit 5", 1),
            (
                "tessera write --games g.pgn",
                "tessera write --games g.pgn",
                0,
            ),
            (
                "tessera write --json --raw",
                "tessera write --json --raw",
                0,
            ),
            (
                "tessera write --json a.json",
                "tessera write --json-file a.json",
                1,
            ),
            ("tessera write --json=-", "tessera write --json-file -", 1),
            (
                "tessera write --nets a=1 b=2 g",
                "tessera write --nets a=1,b=2 g",
                1,
            ),
            (
                "tessera write --nets a=1,b=2 g",
                "tessera write --nets a=1,b=2 g",
                0,
            ),
            ("tessera write -- -g", "tessera write -- -g", 0),
            ("tessera bench --minutes 5", "tessera bench --minutes 5", 0),
            ("tessera", "tessera", 0),
            ("tessera run --config", "tessera run --config", 0),
            ("tessera run --minutes -5", "tessera run --time -5", 1),
            ("tessera run -é", "tessera run -é", 0),
        ] {
            let (found, notes) = translated(line);
            assert_eq!(
                (&*found, notes.len()),
                (expected, count),
                "{line}: {notes:?}"
            );
        }
    }

    #[test]
    fn a_note_says_how_to_write_it() {
        let (_, notes) = translated("train run --minutes 5");
        let expected = "note: write `--time 5m` in place of `--minutes 5`, which the next release \
            will not know";
        assert_eq!(notes, [expected]);
    }
}
