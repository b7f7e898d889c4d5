//! Shell completions and manual pages, generated from both programs' command lines.

use crate::version::version;
use clap_complete::Shell;
use std::io::{self, Write};
use std::path::PathBuf;

/// The commands that describe a program.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Print completions for a shell
    ///
    /// For Bash, put `eval "$(NAME completions bash)"` in ~/.bashrc, where NAME is this program's
    /// name. Zsh, fish, PowerShell and Elvish load the script similarly.
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write manual pages, one for each command
    #[command(hide = true)]
    Man {
        /// The folder
        folder: PathBuf,
    },
}

impl Command {
    /// Generates the files for `program`, given its command line.
    ///
    /// # Errors
    /// If standard output or the folder cannot be written.
    pub fn run(self, program: clap::Command) -> io::Result<()> {
        match self {
            Command::Completions { shell } => {
                let script = script(shell, &without_hidden(&program));
                io::stdout().write_all(script.as_bytes())
            }
            Command::Man { folder } => {
                std::fs::create_dir_all(&folder)?;
                clap_mangen::generate_to(program, folder)
            }
        }
    }
}

/// Returns the completion script of a program.
fn script(shell: Shell, program: &clap::Command) -> String {
    let name = program.get_name();
    // In Bash, clap's script for a name with a hyphen does not complete the options of commands.
    let plain = match shell {
        Shell::Bash => name.replace('-', "_"),
        _ => name.to_owned(),
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program.clone(), &plain, &mut script);
    let script = String::from_utf8(script).expect("clap writes UTF-8");
    script.replace(&format!(" {plain}\n"), &format!(" {name}\n"))
}

/// Returns the command line without hidden commands, which completion scripts would otherwise
/// offer.
fn without_hidden(command: &clap::Command) -> clap::Command {
    // clap needs command names with a static lifetime.
    let name: &'static str = command.get_name().to_owned().leak();
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    let mut visible = clap::Command::new(name)
        .about(command.get_about().cloned().unwrap_or_default())
        .args(command.get_arguments().cloned())
        .groups(command.get_groups().cloned())
        .subcommands(shown.map(without_hidden));
    if command.get_version().is_some() {
        visible = visible.version(version());
    }
    visible
}
