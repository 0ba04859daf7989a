//! `hatebeam well`: a well's picture, piece, children and parents.

use crate::args::WellArgs;
use crate::input::{Lines, refuse_terminal};
use crate::output::CANNOT_WRITE;
use anyhow::{Context, ensure};
use hatebeam_game::{Backward, Children, Emulator, Geometry, Parent, Piece, Well};
use serde::Serialize;
use std::io::{self, BufWriter, Read, Write};

/// What `--json` prints for a well; the fields and their order are part of the interface.
#[derive(Debug, Serialize)]
struct Expansion {
    well: String,
    piece: char,
    children: Vec<String>,
    can_die: bool,
}

/// Runs `hatebeam well`.
pub(crate) fn well(args: &WellArgs) -> anyhow::Result<()> {
    let mut teller = Teller::new(args)?;
    let mut out = BufWriter::new(io::stdout().lock());
    match args.well.as_deref() {
        Some(hex) if hex != "-" => teller.tell(hex, &mut out).context("HEX")?,
        given => {
            if given.is_none() {
                refuse_terminal("well: give it in hex as an argument")?;
            }
            teller.tell_all(io::stdin().lock(), &mut out)?;
        }
    }
    out.flush().context(CANNOT_WRITE)
}

/// Tells about wells, one after the other.
struct Teller {
    emulator: Emulator,
    backward: Backward,
    children: Children,
    parents: Vec<Parent>,
    json: bool,
}

impl Teller {
    fn new(args: &WellArgs) -> anyhow::Result<Teller> {
        let emulator = Emulator::new(args.variant.geometry()?, args.variant.rules());
        let backward = Backward::new(&emulator);
        let (children, parents) = (Children::new(), Vec::new());
        Ok(Teller {
            emulator,
            backward,
            children,
            parents,
            json: args.json,
        })
    }

    fn geometry(&self) -> Geometry {
        self.emulator.geometry()
    }

    /// Tells about the well on each line, up to the first that is bad.
    fn tell_all(&mut self, input: impl Read, out: &mut impl Write) -> anyhow::Result<()> {
        let mut lines = Lines::new(input);
        loop {
            // Whoever feeds us a well at a time waits for the answer to the last one.
            if lines.may_wait() {
                out.flush().context(CANNOT_WRITE)?;
            }
            let told = match lines.next() {
                Ok(None) => break,
                Ok(Some(line)) => self.tell(line, out),
                Err(error) => Err(error),
            };
            if told.is_err() {
                out.flush().context(CANNOT_WRITE)?;
            }
            told.with_context(|| format!("standard input, line {}", lines.number()))?;
        }
        ensure!(
            lines.number() > 0,
            "standard input is empty: there should be a well on each line"
        );
        Ok(())
    }

    /// Tells about one well; nothing is written if it is bad.
    fn tell(&mut self, hex: &str, out: &mut impl Write) -> anyhow::Result<()> {
        let well = Well::from_hex(self.geometry(), hex)?;
        let piece = self.emulator.expand(&well, &mut self.children);
        let text = if self.json {
            let expansion = Expansion {
                well: well.to_hex(self.geometry()),
                piece: piece.letter(),
                children: self.sorted_children(),
                can_die: self.children.can_die(),
            };
            serde_json::to_string(&expansion)? + "\n"
        } else {
            self.describe(&well, piece)
        };
        out.write_all(text.as_bytes()).context(CANNOT_WRITE)
    }

    /// The children as text, with `+n` where n lines were cleared, sorted.
    fn sorted_children(&self) -> Vec<String> {
        let name = |(child, lines): (&Well, u8)| with_lines(child.to_hex(self.geometry()), lines);
        let mut children: Vec<String> = self.children.iter().map(name).collect();
        children.sort_unstable();
        children
    }

    /// A well and its family for people to read; `piece` and `self.children` are the well's.
    fn describe(&mut self, well: &Well, piece: Piece) -> String {
        let geometry = self.geometry();
        self.backward.parents(well, &mut self.parents);
        let clearing = self
            .children
            .lines()
            .iter()
            .filter(|&&lines| lines > 0)
            .count();
        let mut text = format!("{}\n{}\n", well.to_hex(geometry), well.picture(geometry));
        text += &format!("piece     {piece}\n");
        text += &format!(
            "can die   {}\n",
            if self.children.can_die() { "yes" } else { "no" }
        );
        text += &format!(
            "children  {} ({clearing} with lines cleared)\n",
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
    if lines > 0 {
        format!("{hex}+{lines}")
    } else {
        hex
    }
}
