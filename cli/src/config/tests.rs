use super::file::{Problem, SHARED};
use super::*;
use clap::Arg;
use clap::error::ErrorKind;

fn parse(text: &str) -> Result<File, Vec<Problem>> {
    File::parse(text, &Args::command())
}

#[track_caller]
fn problem(text: &str) -> String {
    let problems = parse(text).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems[0].to_string()
}

/// A command line with what a file of this text adds.
fn merged(text: &str, typed: &[&str]) -> Vec<String> {
    let all = Args::command();
    let file = File::parse(text, &all).unwrap();
    let words: Vec<OsString> = std::iter::once("hatebeam")
        .chain(typed.iter().copied())
        .map(OsString::from)
        .collect();
    let lenient = all.clone().ignore_errors(true);
    let matches = lenient.try_get_matches_from(&words).unwrap();
    let called = Called::of(&matches, &all).unwrap();
    let taken = called.taken(&file);
    let added = taken
        .iter()
        .flat_map(|(setting, long)| super::words(setting, long));
    let at = called.position(&words);
    let mut words: Vec<String> = words
        .into_iter()
        .map(|word| word.into_string().unwrap())
        .collect();
    words.splice(at..at, added);
    words.remove(0);
    words
}

#[test]
fn the_file_is_put_before_what_is_typed() {
    let file = "[perft]\ndepth = 6\njson = true\nheight = 0x4\n";
    assert_eq!(
        merged(file, &["perft", "--width", "8"]),
        ["perft", "--depth=6", "--height=4", "--json", "--width", "8"]
    );
    assert_eq!(
        merged(
            file,
            &["--config", "perft", "perft", "--depth", "3", "--json"]
        ),
        [
            "--config",
            "perft",
            "perft",
            "--height=4",
            "--depth",
            "3",
            "--json"
        ]
    );
    assert_eq!(merged(file, &["well", "--json"]), ["well", "--json"]);
}

#[test]
fn a_commands_own_section_wins_over_the_shared_one() {
    let file = "[shared]\nstate = '/all'\n[runs.show]\nstate = '/one'\nverify = false\n";
    assert_eq!(
        merged(file, &["runs", "show", "x"]),
        ["runs", "show", "--state=/one", "x"]
    );
    assert_eq!(
        merged(file, &["resume", "x"]),
        ["resume", "--state=/all", "x"]
    );
}

#[test]
fn what_stands_against_something_that_was_typed_is_left_out() {
    let file = "[run]\nstart-well = '00'\nwidth = '1k'\n";
    let typed = ["run", "--start-replay", "x", "--from-piece", "3"];
    let words = merged(file, &typed);
    assert_eq!(words[1], "--width=1k");
    assert_eq!(words[2..], typed[1..]);
    let file = "[replay.verify]\nfile = 'game.txt'\n";
    assert_eq!(
        merged(file, &["replay", "verify", "DD"]),
        ["replay", "verify", "DD"]
    );
    assert_eq!(
        merged(file, &["replay", "verify"]),
        ["replay", "verify", "--file=game.txt"]
    );
}

#[test]
fn flags_that_repeat_are_lists() {
    let file = "[run]\nweight = ['holes=15', 'score=-400']\n";
    assert_eq!(
        merged(file, &["run"]),
        ["run", "--weight=holes=15", "--weight=score=-400"]
    );
    let typed = ["run", "--weight", "holes=1"];
    assert_eq!(merged(file, &typed), typed);
}

#[test]
fn what_is_not_known_is_named_with_what_is_near() {
    for (text, expected) in [
        (
            "[run]\nwidht = 5\n",
            "2: there is no key `widht` in [run]; `width` is meant",
        ),
        (
            "[run]\n\nmax_depth = 5\n",
            "3: there is no key `max_depth` in [run]; `max-depth` is meant",
        ),
        (
            "[runn]\n",
            "1: there is no section [runn]: sections are named as commands; [run] is meant",
        ),
        (
            "[runs.shwo]\njson = true\n",
            "1: there is no section [runs.shwo]: sections are named as commands; [runs.show] is meant",
        ),
        ("[config]\n", "1: there is no section [config]"),
        (
            "[replay]\nfile = 'x'\n",
            "2: there is no key `file` in [replay]; it holds sections only",
        ),
        (
            "json = true\n[run]\n",
            "1: `json` stands before the first section",
        ),
        (
            "[shared]\nwidth = 1\n",
            "2: there is no key `width` in [shared]",
        ),
        (
            "[shared]\nstat = '/x'\n",
            "2: there is no key `stat` in [shared]; `state` is meant",
        ),
        ("[run]\nconfig = 'x'\n", "2: there is no key `config`"),
        ("[run]\nhelp = true\n", "2: there is no key `help`"),
        ("[run\n", "1: "),
        ("[run]\njson = true\njson = true\n", "3: "),
    ] {
        let problem = problem(text);
        assert!(problem.starts_with(expected), "{text}: {problem}");
        assert_eq!(problem.lines().count(), 1, "{problem}");
    }
}

#[test]
fn values_are_judged_as_if_they_had_been_typed() {
    for (text, expected) in [
        (
            "[run]\nthreads = 'many'\n",
            "2: `threads`: invalid value 'many' for '--threads <N>'",
        ),
        (
            "[run]\nthreads = 5000\n",
            "2: `threads`: invalid value '5000'",
        ),
        (
            "[run]\nthreads = [1, 2]\n",
            "2: `threads`: it takes a value, and not a list",
        ),
        (
            "[run]\nthreads = true\n",
            "2: `threads`: it takes a value, and not true or false",
        ),
        (
            "[run]\nthreads = 1979-05-27\n",
            "2: `threads`: it takes a value, and not a date",
        ),
        (
            "[run]\njson = 1\n",
            "2: `json`: it is true or false, and not a number",
        ),
        (
            "[run]\njson = 'yes'\n",
            "2: `json`: it is true or false, and not a text",
        ),
        (
            "[run.json]\nx = 1\n",
            "1: `json`: it is true or false, and not a section",
        ),
        ("[run]\nwidth = 0\n", "2: `width`: invalid value '0'"),
        (
            "[run]\nmax-depth = 99999999999999999999\n",
            "2: `max-depth`: 99999999999999999999 is beyond all numbers",
        ),
        (
            "[run]\nevaluator = 'pattern'\n",
            "2: `evaluator`: invalid value 'pattern' for '--evaluator <NAME>' [possible values: ",
        ),
        (
            "[run]\nweight = ['a=1', 2, true]\n",
            "2: `weight`: it takes a value, and not true or false",
        ),
    ] {
        let problem = problem(text);
        assert!(problem.starts_with(expected), "{text}: {problem}");
        assert_eq!(problem.lines().count(), 1, "{problem}");
    }
    let problems = parse("[run]\nthreads = 0\nwidth = 0\n[nothing]\n").unwrap_err();
    let lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [2, 3, 4]);
}

#[test]
fn secrets_are_sent_where_they_belong() {
    for key in [
        "token",
        "s3-secret-key",
        "password",
        "aws_secret",
        "access-key",
    ] {
        let text = problem(&format!("[shared]\n{key} = 'hush'\n"));
        for part in [key, "token-file", "HATEBEAM_TOKEN"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("hush"), "{text}");
    }
}

/// A value that clap takes for a flag, found by trying.
fn sample(path: &[&str], flag: &Arg) -> Given {
    if flags::is_switch(flag) {
        return Given::Switch(true);
    }
    let possible = flag.get_possible_values();
    let possible = possible.iter().map(|value| value.get_name().to_owned());
    let others = [
        "4",
        "100",
        "0.5",
        "127.0.0.1:0",
        "http://127.0.0.1:1",
        "AES256",
        "all",
        "name",
    ];
    let mut candidates = possible.chain(others.map(str::to_owned));
    let takes = |value: &String| {
        let mut words = vec!["hatebeam"];
        words.extend(path);
        let typed = format!("--{}={value}", flags::name(flag));
        words.push(&typed);
        // Whatever else is missing is not what is asked.
        let parsed = Args::command().try_get_matches_from(words);
        parsed.map_or_else(
            |error| {
                !matches!(
                    error.kind(),
                    ErrorKind::InvalidValue | ErrorKind::ValueValidation
                )
            },
            |_| true,
        )
    };
    let found = candidates.find(takes);
    Given::Values(vec![found.unwrap_or_else(|| {
        panic!("{path:?} --{}: add a value to the list", flags::name(flag))
    })])
}

#[test]
fn every_flag_of_every_command_can_be_in_the_file() {
    let all = Args::command();
    let mut tried = 0;
    for (path, command) in flags::commands(&all) {
        for flag in flags::of(command) {
            let (name, given) = (flags::name(flag), sample(&path, flag));
            let value = match &given {
                Given::Switch(on) => on.to_string(),
                Given::Values(values) => format!("{:?}", values[0]),
            };
            let own = format!("[{}]\n{name} = {value}\n", path.join("."));
            let shared = format!("[{SHARED}]\n{name} = {value}\n");
            let mut texts = vec![own];
            texts.extend(flags::is_shared(flag).then_some(shared));
            for text in texts {
                let words = merged(&text, &path);
                let expected = match &given {
                    Given::Switch(_) => format!("--{name}"),
                    Given::Values(values) => format!("--{name}={}", values[0]),
                };
                assert_eq!(words[path.len()..], [expected], "{text}");
                tried += 1;
            }
        }
    }
    assert!(tried > 100, "{tried}");
}

#[test]
fn no_flag_is_called_as_a_command_below_it() {
    for (path, command) in flags::commands(&Args::command()) {
        for flag in flags::of(command) {
            assert!(
                command.find_subcommand(flags::name(flag)).is_none(),
                "{path:?}"
            );
        }
    }
    assert!(Args::command().find_subcommand(SHARED).is_none());
}

#[test]
fn the_example_is_what_a_file_can_be() {
    let all = Args::command();
    let text = example::text(&all);
    assert!(parse(&text).unwrap().settings.is_empty());
    // All that is commented out, in force: nothing in it is unknown, and what stands for a default is one.
    let is_key = |line: &&str| line.starts_with('#') && !line.starts_with("# ") && line.len() > 1;
    let keys = text.lines().filter(is_key).count();
    let in_force: String = text
        .lines()
        .map(|line| format!("{}\n", if is_key(&line) { &line[1..] } else { line }))
        .collect();
    let refused = match parse(&in_force) {
        Ok(_) => Vec::new(),
        Err(problems) => problems,
    };
    for problem in &refused {
        assert!(
            problem.text.contains("invalid value"),
            "{problem}\n{in_force}"
        );
    }
    let flags: usize = flags::commands(&all)
        .iter()
        .map(|(_, command)| flags::of(command).filter(|f| !flags::is_shared(f)).count())
        .sum();
    assert_eq!(keys, flags + flags::shared(&flags::commands(&all)).len());
    assert!(text.lines().all(|line| line.chars().count() <= 110));
}

/// Whatever is in a file, it is cut_verdict, and each fault has a line of the file.
#[test]
fn damaged_files_are_judged() {
    let all = Args::command();
    let whole = example::text(&all).replace("\n#", "\n");
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for _ in 0..300 {
        let from = random(whole.len());
        let mut bytes = whole.as_bytes()[from..].to_vec();
        bytes.truncate(random(400) + 1);
        for _ in 0..random(4) {
            let at = random(bytes.len());
            bytes[at] = b"[]{}=.\"'#\n\0\xffx0-"[random(15)];
        }
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().count().max(1) + 1;
        for problem in parse(&text).err().into_iter().flatten() {
            assert!((1..=lines).contains(&problem.line), "{problem}: {text}");
        }
    }
}
