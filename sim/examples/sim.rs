//! Command line tool that simulates seeds: `cargo run --release -p hatebeam-sim --example sim -- --seed N`.

use hatebeam_sim::{Class, Detail, Mix, Options, Report, Summary, run_seed, run_seeds};
use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;

const HELP: &str = "\
Simulate a cluster of coordinators and workers.

Usage: sim [--seed N | --seeds A..B] [--trace] [--only CLASS,..] [--with CLASS,..] [--threads N]

  --seed N         Simulate one seed and print its log.
  --seeds A..B     Simulate a range of seeds and print the ones that fail [default: 0..1000].
  --trace          Add messages, object store requests and the processes' own log messages to the log.
  --only CLASS,..  Use exactly these classes of events in every seed.
  --with CLASS,..  Use these classes of events in every seed, in addition to random ones.
  --threads N      Simulate on N threads [default: 2].
  --classes        List the classes of events and exit.
  --help           Print this help and exit.";

struct Args {
    seeds: Range<u64>,
    is_single: bool,
    threads: usize,
    options: Options,
}

/// The action that the command line requests.
enum Asked {
    Run(Args),
    Help,
    Classes,
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut parsed = Args {
        seeds: 0..1000,
        is_single: false,
        threads: 2,
        options: Options::default(),
    };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} requires a value"));
        match arg.as_str() {
            "--seed" => {
                let seed = number(&value()?)?;
                parsed.seeds = seed..seed + 1;
                parsed.is_single = true;
            }
            "--seeds" => {
                let text = value()?;
                let (from, to) = text
                    .split_once("..")
                    .ok_or("--seeds requires a range A..B")?;
                parsed.seeds = number(from)?..number(to)?;
            }
            "--trace" => parsed.options.detail = Detail::Everything,
            "--only" => parsed.options.mix = Mix::Only(classes(&value()?)?),
            "--with" => parsed.options.mix = Mix::With(classes(&value()?)?),
            "--threads" => parsed.threads = number(&value()?)? as usize,
            "--classes" => return Ok(Asked::Classes),
            "--help" | "-h" => return Ok(Asked::Help),
            _ => return Err(format!("unknown argument '{arg}': see --help")),
        }
    }
    Ok(Asked::Run(parsed))
}

fn number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("'{text}' is not a number"))
}

fn classes(text: &str) -> Result<Vec<Class>, String> {
    text.split(',').map(str::parse).collect()
}

fn list_classes() {
    for class in Class::ALL {
        println!("{}", class.name());
    }
}

fn run_one(seed: u64, options: &Options) -> ExitCode {
    let Report {
        trace, violations, ..
    } = run_seed(seed, options);
    print!("{trace}");
    match violations.as_slice() {
        [] => println!("seed {seed} passed"),
        violations => println!("seed {seed} failed: {violations:#?}"),
    }
    code(violations.is_empty())
}

fn run_all(args: Args) -> ExitCode {
    let began = Instant::now();
    let summary = run_seeds(args.seeds, args.threads, &args.options, |report| {
        let first = report.violations.first().map_or("", String::as_str);
        println!("seed {} failed: {first}", report.seed);
    });
    let Summary {
        seeds,
        depths,
        epochs,
        splits,
        ..
    } = summary;
    let (failed, hours) = (summary.failed.len(), summary.elapsed.as_secs() / 3600);
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{seeds} seeds, {failed} failed, {depths} depths, {epochs} epochs, {splits} with split shards, {hours} hours simulated in \
         {seconds:.1} s"
    );
    for (class, seeds) in &summary.classes {
        println!("  {:<20} {seeds}", class.name());
    }
    code(summary.failed.is_empty())
}

fn code(passed: bool) -> ExitCode {
    match passed {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Ok(Asked::Run(args)) if args.is_single => run_one(args.seeds.start, &args.options),
        Ok(Asked::Run(args)) => run_all(args),
        Ok(Asked::Help) => {
            println!("{HELP}");
            ExitCode::SUCCESS
        }
        Ok(Asked::Classes) => {
            list_classes();
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
