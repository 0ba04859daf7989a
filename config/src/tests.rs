use super::*;
use clap::{ArgAction, value_parser};

/// Returns the definition of a command line with nested commands and several kinds of flags.
fn program() -> Command {
    let value = |name: &'static str| Arg::new(name).long(name).value_name("N");
    let switch = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    let state = || value("state").env("SAMPLE_STATE");
    let number = |name| value(name).value_parser(value_parser!(u16).range(1..=4096));
    let start_well = value("start-well").conflicts_with("start-replay");
    let start_replay = value("start-replay").requires("from-piece");
    let run = Command::new("run").args([
        number("width").default_value("10"),
        number("threads"),
        value("max-depth").value_parser(value_parser!(u32)),
        value("evaluator").value_parser(["patterns", "plain"]),
        value("weight").action(ArgAction::Append),
        start_well,
        start_replay,
        value("from-piece").requires("start-replay"),
        switch("json"),
        state(),
    ]);
    let show = Command::new("show").args([
        Arg::new("run").required(true),
        switch("verify"),
        switch("json"),
        state(),
    ]);
    let file = value("file").conflicts_with("replay");
    let verify = Command::new("verify").args([Arg::new("replay"), file]);
    let config = Arg::new("config").long("config").global(true);
    Command::new("sample")
        .arg(config.value_parser(value_parser!(PathBuf)))
        .subcommand(run)
        .subcommand(Command::new("runs").subcommand(show))
        .subcommand(Command::new("resume").args([Arg::new("run"), state()]))
        .subcommand(Command::new("replay").subcommand(verify))
        .subcommand(Command::new("config"))
}

fn parse(text: &str) -> Result<File, Vec<Problem>> {
    File::parse(text, &program())
}

#[track_caller]
fn problem(text: &str) -> String {
    let problems = parse(text).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems[0].to_string()
}

/// Returns the typed command line after adding the flags of a file.
fn merged(text: &str, typed: &[&str]) -> Vec<String> {
    let all = program();
    let file = File::parse(text, &all).unwrap();
    let words = std::iter::once("sample").chain(typed.iter().copied());
    let merged = file.add_to(&all, words.map(OsString::from).collect());
    let words = merged.words.into_iter().skip(1);
    words.map(|word| word.into_string().unwrap()).collect()
}

#[test]
fn flags_from_the_file_precede_typed_flags() {
    let file = "[run]\nthreads = 6\njson = true\nmax-depth = 0x4\n";
    assert_eq!(
        merged(file, &["run", "--width", "8"]),
        [
            "run",
            "--threads=6",
            "--max-depth=4",
            "--json",
            "--width",
            "8"
        ]
    );
    let typed = ["--config", "run", "run", "--threads", "3", "--json"];
    let expected = [
        "--config",
        "run",
        "run",
        "--max-depth=4",
        "--threads",
        "3",
        "--json",
    ];
    assert_eq!(merged(file, &typed), expected);
    assert_eq!(merged(file, &["resume", "x"]), ["resume", "x"]);
}

#[test]
fn section_of_a_command_takes_precedence_over_shared() {
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
fn flags_that_conflict_with_typed_flags_are_omitted() {
    let file = "[run]\nstart-well = '00'\nwidth = 100\n";
    let typed = ["run", "--start-replay", "x", "--from-piece", "3"];
    let words = merged(file, &typed);
    assert_eq!(words[1], "--width=100");
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
fn lists_become_repeated_flags() {
    let file = "[run]\nweight = ['holes=15', 'score=-400']\n";
    assert_eq!(
        merged(file, &["run"]),
        ["run", "--weight=holes=15", "--weight=score=-400"]
    );
    let typed = ["run", "--weight", "holes=1"];
    assert_eq!(merged(file, &typed), typed);
}

#[test]
fn errors_for_unknown_names_and_invalid_syntax_give_line_and_suggestion() {
    for (text, expected) in [
        (
            "[run]\nwidht = 5\n",
            "2: unknown key `widht` in [run]; did you mean `width`?",
        ),
        (
            "[run]\n\nmax_depth = 5\n",
            "3: unknown key `max_depth` in [run]; did you mean `max-depth`?",
        ),
        (
            "[runn]\n",
            "1: unknown section [runn]: a section must have the name of a command; did you mean [run]?",
        ),
        (
            "[runs.shwo]\njson = true\n",
            "1: unknown section [runs.shwo]: a section must have the name of a command; did you mean [runs.show]?",
        ),
        ("[config]\n", "1: unknown section [config]"),
        (
            "[replay]\nfile = 'x'\n",
            "2: unknown key `file` in [replay]; this section can only contain other sections",
        ),
        ("json = true\n[run]\n", "1: `json` is outside all sections"),
        (
            "[shared]\nwidth = 1\n",
            "2: unknown key `width` in [shared]",
        ),
        (
            "[shared]\nstat = '/x'\n",
            "2: unknown key `stat` in [shared]; did you mean `state`?",
        ),
        ("[run]\nconfig = 'x'\n", "2: unknown key `config`"),
        ("[run]\nhelp = true\n", "2: unknown key `help`"),
        ("[run\n", "1: "),
        ("[run]\njson = true\njson = true\n", "3: "),
    ] {
        let problem = problem(text);
        assert!(problem.starts_with(expected), "{text}: {problem}");
        assert_eq!(problem.lines().count(), 1, "{problem}");
    }
}

#[test]
fn values_in_file_are_checked_like_typed_values() {
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
            "2: `threads`: expects a value, not a list",
        ),
        (
            "[run]\nthreads = true\n",
            "2: `threads`: expects a value, not true or false",
        ),
        (
            "[run]\nthreads = 1979-05-27\n",
            "2: `threads`: expects a value, not a date",
        ),
        (
            "[run]\njson = 1\n",
            "2: `json`: expects true or false, not a number",
        ),
        (
            "[run]\njson = 'yes'\n",
            "2: `json`: expects true or false, not a string",
        ),
        (
            "[run.json]\nx = 1\n",
            "1: `json`: expects true or false, not a section",
        ),
        ("[run]\nwidth = 0\n", "2: `width`: invalid value '0'"),
        (
            "[run]\nmax-depth = 99999999999999999999\n",
            "2: `max-depth`: 99999999999999999999 is out of range",
        ),
        (
            "[run]\nevaluator = 'pattern'\n",
            "2: `evaluator`: invalid value 'pattern' for '--evaluator <N>' [possible values: ",
        ),
        (
            "[run]\nweight = ['a=1', 2, true]\n",
            "2: `weight`: expects a value, not true or false",
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
fn error_for_secret_key_names_where_to_store_secrets() {
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

#[test]
fn example_with_all_keys_uncommented_is_valid_except_for_placeholders() {
    let all = program();
    let text = example(&all);
    assert!(parse(&text).unwrap().entries.is_empty());
    let is_key = |line: &&str| line.starts_with('#') && !line.starts_with("# ") && line.len() > 1;
    let keys = text.lines().filter(is_key).count();
    let in_force: String = text
        .lines()
        .map(|line| format!("{}\n", if is_key(&line) { &line[1..] } else { line }))
        .collect();
    for problem in parse(&in_force).err().into_iter().flatten() {
        assert!(
            problem.text.contains("invalid value"),
            "{problem}\n{in_force}"
        );
    }
    let commands = commands(&all);
    let own = commands.iter().flat_map(|(_, command)| flags_of(command));
    let own = own.filter(|flag| !is_shared(flag)).count();
    assert_eq!(keys, own + flags::shared(&commands).len());
    assert!(text.lines().all(|line| line.chars().count() <= 110));
}

#[test]
fn settings_report_value_and_origin() {
    let all = program();
    let file = File::parse("[run]\nthreads = 3\n", &all).unwrap();
    let in_force = Setting::in_force(&file, &all);
    let keys: Vec<&str> = in_force
        .iter()
        .map(|setting| setting.key.as_str())
        .collect();
    assert_eq!(keys, ["threads"]);
    assert_eq!(in_force[0].to_string(), "line 2");
    let of_run = Setting::of_command(&file, &["run"], all.find_subcommand("run").unwrap());
    let of = |key: &str| of_run.iter().find(|setting| setting.key == key).unwrap();
    assert_eq!(of("width").value.as_deref(), Some("10"));
    assert_eq!(of("json").value.as_deref(), Some("false"));
    assert_eq!(
        (of("threads").from, of("threads").line),
        (Origin::File, Some(2))
    );
    assert_eq!(
        (of("weight").from, of("weight").to_string().as_str()),
        (Origin::Unset, "unset")
    );
}

#[test]
fn problems_in_damaged_file_have_valid_line_numbers() {
    let all = program();
    let whole = example(&all).replace("\n#", "\n");
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
