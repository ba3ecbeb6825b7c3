//! `terrace man`: prints a manual page.

use std::io;
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::Args;
use clap_mangen::Man;

use super::Answer;

/// Print the manual page of this command or of one of its subcommands
#[derive(Args)]
#[command(after_help = "\
Examples:
  terrace man | man -l -
  terrace man bench db | man -l -
  terrace man --all ~/.local/share/man/man1")]
pub struct Arguments {
    /// Subcommand
    command: Vec<String>,

    /// Write the pages of all commands to files in this directory instead
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    all: Option<PathBuf>,
}

pub fn run(arguments: &Arguments, mut command: clap::Command) -> Result<Answer> {
    command.build();
    if let Some(directory) = &arguments.all {
        clap_mangen::generate_to(command, directory)
            .map_err(|error| anyhow!("cannot write to {}: {error}", directory.display()))?;
        return Ok(Answer::Yes);
    }
    let mut chosen = &command;
    for name in &arguments.command {
        chosen = chosen.find_subcommand(name).ok_or_else(|| anyhow!("there is no command {name:?}"))?;
    }
    let title = chosen.get_bin_name().unwrap_or("terrace").replace(' ', "-");
    let mut page = Vec::new();
    Man::new(chosen.clone()).title(title).render(&mut page)?;
    io::Write::write_all(&mut io::stdout().lock(), &page)?;
    Ok(Answer::Yes)
}
