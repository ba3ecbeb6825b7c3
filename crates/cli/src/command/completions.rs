//! `terrace completions`: prints a shell's completion script.

use std::io;

use anyhow::Result;
use clap::Args;
use clap_complete::Shell;

use super::Answer;

/// Print a script that completes this command's words in a shell
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace completions bash > ~/.local/share/bash-completion/completions/terrace
  terrace completions zsh > ~/.zfunc/_terrace
  terrace completions fish > ~/.config/fish/completions/terrace.fish")]
pub struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(arguments: &Arguments, mut command: clap::Command) -> Result<Answer> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "terrace", &mut script);
    io::Write::write_all(&mut io::stdout().lock(), &script)?;
    Ok(Answer::Yes)
}
