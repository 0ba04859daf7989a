//! `hatebeam well`: print a well's picture, piece, children and parents.

use crate::args::VariantArgs;
use crate::input::{LineFormat, MAX_WELL_BYTES, answer_lines, refuse_terminal};
use crate::output;
use anyhow::Context;
use hatebeam_game::{Backward, Children, Emulator, Parent, Piece, Well};
use serde::Serialize;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("well"))]
pub(crate) struct WellArgs {
    /// Well in hex, 48 digits at 10x16; `-` reads one well per line from standard input [default: standard input]
    #[arg(value_name = "HEX")]
    well: Option<String>,
    #[command(flatten)]
    variant: VariantArgs,
    /// Print one JSON object per well, with its piece, children and parents
    #[arg(long)]
    json: bool,
}

/// The output of `--json` for a well. Scripts may rely on the names and the order of the fields.
#[derive(Debug, Serialize)]
struct Expansion {
    well: String,
    piece: char,
    children: Vec<String>,
    can_die: bool,
    parents: Vec<ParentJson>,
}

/// A parent of a well.
#[derive(Debug, Serialize)]
struct ParentJson {
    well: String,
    /// Piece that leads from the parent to the well.
    piece: char,
    /// Number of rows that this piece clears.
    lines: u8,
}

impl WellArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let emulator = Emulator::new(self.variant.geometry()?, self.variant.rules());
        let mut describer = Describer {
            backward: Backward::new(&emulator),
            emulator,
            children: Children::new(),
            parents: Vec::new(),
            json: self.json,
        };
        match self.well.as_deref() {
            Some(hex) if hex != "-" => {
                output::print(describer.describe(hex).context("invalid HEX")?)
            }
            given => {
                if given.is_none() {
                    refuse_terminal(
                        "well: pass it in hex as an argument, or pipe it to standard input",
                    )?;
                }
                let format = LineFormat {
                    content: "well",
                    max_bytes: MAX_WELL_BYTES,
                    json: self.json,
                };
                answer_lines(format, |hex| describer.describe(hex))
            }
        }
    }
}

/// The output settings, and buffers that are reused for each well.
struct Describer {
    emulator: Emulator,
    backward: Backward,
    children: Children,
    parents: Vec<Parent>,
    json: bool,
}

impl Describer {
    fn describe(&mut self, hex: &str) -> anyhow::Result<String> {
        let geometry = self.emulator.geometry();
        let well = Well::from_hex(geometry, hex)?;
        let piece = self.emulator.expand(&well, &mut self.children);
        self.backward.parents(&well, &mut self.parents);
        if !self.json {
            return Ok(self.text(&well, piece));
        }
        let expansion = Expansion {
            well: well.to_hex(geometry),
            piece: piece.letter(),
            children: self.sorted_children(),
            can_die: self.children.can_die(),
            parents: self
                .parents
                .iter()
                .map(|parent| self.json_of(parent))
                .collect(),
        };
        Ok(serde_json::to_string(&expansion)? + "\n")
    }

    fn json_of(&self, parent: &Parent) -> ParentJson {
        ParentJson {
            well: parent.well.to_hex(self.emulator.geometry()),
            piece: parent.piece.letter(),
            lines: parent.lines,
        }
    }

    /// Returns the children in hex, sorted, with the suffix `+n` if n rows were cleared.
    fn sorted_children(&self) -> Vec<String> {
        let geometry = self.emulator.geometry();
        let name = |(child, lines): (&Well, u8)| with_lines(child.to_hex(geometry), lines);
        let mut children: Vec<String> = self.children.iter().map(name).collect();
        children.sort_unstable();
        children
    }

    /// Returns a human-readable description of a well. `piece` and `self.children` must be the results of
    /// expanding `well`, and `self.parents` must be its parents.
    fn text(&self, well: &Well, piece: Piece) -> String {
        let geometry = self.emulator.geometry();
        let lines = self.children.lines().iter();
        let clearing = lines.filter(|&&lines| lines > 0).count();
        let can_die = if self.children.can_die() { "yes" } else { "no" };
        let mut text = format!(
            "{}\n{}\npiece     {piece}\ncan die   {can_die}\nchildren  {} ({clearing} with lines cleared)\n",
            well.to_hex(geometry),
            well.picture(geometry),
            self.children.len()
        );
        for child in self.sorted_children() {
            text += &format!("  {child}\n");
        }
        text += &format!("parents   {}\n", self.parents.len());
        for parent in &self.parents {
            let hex = with_lines(parent.well.to_hex(geometry), parent.lines);
            text += &format!("  {} {hex}\n", parent.piece);
        }
        text
    }
}

fn with_lines(hex: String, lines: u8) -> String {
    match lines {
        0 => hex,
        lines => format!("{hex}+{lines}"),
    }
}
