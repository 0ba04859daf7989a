//! Tests of beams, labels and short training runs.

#![allow(clippy::unwrap_used)] // helper functions also call `unwrap`

use hatebeam_files::FolderLockError;
use hatebeam_game::{Emulator, Enemy, Geometry, Rules, Well, decode, play, replay_of_wells};
use hatebeam_search::{
    Evaluator, EvaluatorKind, EvaluatorSpec, Frontier, Network, NetworkError, Node, NodeWell,
    Quiescence, ShardLayout, Step,
};
use hatebeam_train::{
    Beam, BeamRecipe, BeamSettings, ExamRecipe, Noise, Player, Recipe, RecipeError, TrainError,
    Trainer, TrainingFolder, exact_game, examine, label_beam, lifetimes, run_beam,
};
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

static CONTINUE: AtomicBool = AtomicBool::new(false);

const TINY: &str = r#"
seed = 5
samples = 3000
buffer = 2
epoch = 9000
average = 0.5
publish = { from = 2, every = 1 }
[exam]
every = 2
widths = [20, 40]

[[stages]]
generations = 2
[[stages.beams]]
player = "patterns"
widths = [40, 80]
noise = 0.5
[[stages.beams]]
player = "own"
count = 2
widths = [30, 60]
noise = 1.0

[[stages]]
generations = 1
leaves = 0.5
[[stages.beams]]
player = "own"
widths = [20, 30]
quiescence = "first"
noise = 1.0
"#;

/// Returns the recipe `TINY` extended by a public game, own games and short searches.
fn tiny_with_everything() -> Recipe {
    let text = TINY.replace(
        "[[stages]]\ngenerations = 2",
        r#"
[[games]]
name = "david-and-felipe-148"
pieces = 250

[own_games]
keep = 3
first = ["network-91", "REPLAY"]

[[stages]]
generations = 2
game_samples = 500
rate = [2e-3, 1e-3]
lookahead = { samples = 300, moves = 2, width = 5, pieces = 4, discount = 0.9 }
[[stages.beams]]
player = "own"
count = 2
widths = [10, 20]
noise = 0.5
start = "games"
pieces = 12
[[stages.beams]]
player = "chains"
widths = [20, 40]
noise = 0.5
start = "games"
back = [20, 60]
loops = true
rejoin = true"#,
    );
    let replay = include_str!("../../examples/records/chains-130.txt");
    Recipe::from_toml(&text.replace("REPLAY", replay.trim())).unwrap()
}

fn emulator() -> Emulator {
    Emulator::new(Geometry::STANDARD, Rules::default())
}

fn patterns() -> EvaluatorSpec {
    EvaluatorSpec::new(EvaluatorKind::Patterns, Quiescence::Off)
}

fn beam(width: usize, noise: Noise) -> Beam {
    beam_of(&patterns(), width, noise)
}

fn beam_of(spec: &EvaluatorSpec, width: usize, noise: Noise) -> Beam {
    let emulator = emulator();
    let mut evaluator = Evaluator::new(&emulator, spec).unwrap();
    let settings = BeamSettings {
        noise,
        keeps: true,
        ..BeamSettings::new(width, 1000)
    };
    run_beam(&emulator, &mut evaluator, &settings, &CONTINUE)
}

/// Returns a trainer's records without durations, and the digest of its network.
fn facts(trainer: &Trainer) -> String {
    let records = trainer.records().iter().map(|record| {
        let mut record = record.clone();
        record.seconds = [0.0; 3];
        record
            .exam
            .iter_mut()
            .for_each(|result| result.seconds = 0.0);
        format!("{record:?}\n")
    });
    records.collect::<String>() + &trainer.network().digest().to_string()
}

#[test]
fn frontiers_equal_those_of_search_step() {
    check_frontiers(patterns(), 150);
    let two_cuts = EvaluatorSpec::new(EvaluatorKind::Patterns, Quiescence::FirstOfBest);
    check_frontiers(two_cuts, 60);
}

fn check_frontiers(spec: EvaluatorSpec, width: usize) {
    let beam = beam_of(&spec, width, Noise::default());
    let layout = ShardLayout::local(width);
    let step = Step::new(&emulator(), spec, layout, 1).unwrap();
    let root = Node {
        score: 0,
        well: NodeWell::pack(Geometry::STANDARD, &Well::EMPTY),
        lines: 0,
        hint: 0,
    };
    let mut frontier = Frontier::new(0, [root], layout);
    for depth in &beam.depths {
        let expected = frontier.nodes().map(|node| (node.well, node.lines));
        let found = depth.wells.iter().copied().zip(depth.lines.iter().copied());
        let [found, expected] = [found.collect::<BTreeSet<_>>(), expected.collect()];
        assert!(found == expected, "depth {}", frontier.depth);
        let (next, _) = step
            .run(&frontier, &AtomicBool::new(false), &AtomicU64::new(0))
            .unwrap();
        frontier = next;
    }
    assert!(beam.died && frontier.is_empty());
    assert!(beam.pieces() > 50);
}

#[test]
fn edges_connect_each_well_to_all_its_parents() {
    let beam = beam(60, Noise::default());
    let emulator = emulator();
    for depths in beam.depths.windows(2) {
        let unpack = |well: &NodeWell| well.unpack(Geometry::STANDARD).unwrap();
        let mut expected = BTreeSet::new();
        let mut children = hatebeam_game::Children::new();
        for (parent, well) in depths[0].wells.iter().enumerate() {
            emulator.expand(&unpack(well), &mut children);
            for (child, well) in depths[1].wells.iter().enumerate() {
                if children.wells().contains(&unpack(well)) {
                    expected.insert([parent as u32, child as u32]);
                }
            }
        }
        let edges: BTreeSet<[u32; 2]> = depths[1].edges.iter().copied().collect();
        assert_eq!(edges, expected);
    }
}

#[test]
fn labels_depend_on_last_depth_with_descendant() {
    let beam = beam(
        50,
        Noise {
            seed: 3,
            first: 100.0,
            rest: 10.0,
        },
    );
    let last = lifetimes(&beam);
    let end = beam.pieces();
    let mut samples = label_beam(&beam).into_iter();
    for (at, depth) in beam.depths.iter().enumerate() {
        for (index, well) in depth.wells.iter().enumerate() {
            // Find the last depth with a descendant of the well.
            let mut here = BTreeSet::from([index as u32]);
            let mut reached = at;
            while let Some(next) = beam.depths.get(reached + 1) {
                let edges = next.edges.iter().filter(|edge| here.contains(&edge[0]));
                here = edges.map(|edge| edge[1]).collect();
                if here.is_empty() {
                    break;
                }
                reached += 1;
            }
            assert_eq!(last[at][index] as usize, reached);
            let sample = samples.next().unwrap();
            assert_eq!(sample.well, *well);
            let (rest, stayed) = ((end - at) as f32, (reached - at) as f32);
            let share = if rest == 0.0 {
                0.0
            } else {
                (stayed / rest.min(20.0)).min(1.0)
            };
            assert_eq!(sample.pieces, rest * (0.5 + 0.5 * share));
        }
    }
    assert!(samples.next().is_none());
}

#[test]
fn labels_add_200_pieces_to_beam_that_reaches_its_limit() {
    let emulator = emulator();
    let mut evaluator = Evaluator::new(&emulator, &patterns()).unwrap();
    let settings = BeamSettings {
        keeps: true,
        ..BeamSettings::new(20, 30)
    };
    let beam = run_beam(&emulator, &mut evaluator, &settings, &CONTINUE);
    assert!(!beam.died);
    let samples = label_beam(&beam);
    // The empty well has descendants in the last frontier, so its target is the full 30 + 200 pieces. The wells of the
    // last frontier have a target of 200.
    assert_eq!(samples[0].pieces, 230.0);
    assert_eq!(samples.last().unwrap().pieces, 200.0);
    // A well without a child in the next frontier has half of the full target.
    assert!(samples.iter().any(|sample| sample.pieces < 120.0));
}

#[test]
fn beam_can_apply_the_loop_rule() {
    let text = include_str!("../../examples/cycles/mild-50.txt");
    let (keys, _) = decode(text).unwrap();
    let rules = Rules::default();
    let game = play(Geometry::STANDARD, rules, Enemy::Mild, &keys);
    // HATETRIS changes the piece that enters this well.
    let wells: Vec<Well> = game.wells().take(119).collect();
    let (start, before) = wells.split_last().unwrap();
    let emulator = emulator();
    let search = |before| {
        let mut evaluator = Evaluator::new(&emulator, &patterns()).unwrap();
        let settings = BeamSettings {
            start: *start,
            before,
            keeps: true,
            ..BeamSettings::new(50, 1000)
        };
        let beam = run_beam(&emulator, &mut evaluator, &settings, &CONTINUE);
        [&wells[..118], &beam.longest_game(Geometry::STANDARD)].concat()
    };
    let keys = |enemy, wells: &[Well]| {
        let keys = replay_of_wells(Geometry::STANDARD, rules, enemy, wells, true);
        keys.is_ok()
    };
    let mild = search(None);
    assert!(keys(Enemy::Mild, &mild) && !keys(Enemy::Hatetris, &mild));
    let exact = search(Some(before.to_vec()));
    assert!(keys(Enemy::Hatetris, &exact) && !keys(Enemy::Mild, &exact));
}

#[test]
fn longest_game_is_valid_and_has_all_pieces() {
    let noise = Noise {
        seed: 1,
        first: 100.0,
        rest: 100.0,
    };
    let beam = beam(20, noise);
    let wells = beam.longest_game(Geometry::STANDARD);
    assert_eq!(wells.len(), beam.pieces() + 1);
    let game = exact_game(&wells).unwrap();
    assert_eq!(game.pieces, wells.len());
    let last = &beam.depths[beam.depths.len() - 1];
    assert_eq!(game.lines, u32::from(last.lines[0]));
}

/// The game of a beam without its wells 5 to 9 is no game, but the beam returns to each of its later wells five pieces later.
#[test]
fn games_that_return_have_more_pieces_and_the_same_end() {
    let beam = beam(40, Noise::default());
    let game = beam.longest_game(Geometry::STANDARD);
    assert!(
        beam.games_that_return(Geometry::STANDARD, &game[1..])
            .is_empty()
    );
    let rest = [&game[1..5], &game[10..]].concat();
    let found = beam.games_that_return(Geometry::STANDARD, &rest);
    assert_eq!(found.len(), 8);
    assert!(found.iter().all(|longer| longer.len() == game.len()));
    let (start, other) = (&game[..1], &game[10..]);
    assert!(found.iter().all(|longer| longer.starts_with(start)));
    assert!(found.iter().all(|longer| longer.ends_with(&other[8..])));
    // The first of them returns at the first opportunity, with wells of the beam.
    assert_eq!(found[0], game);
}

#[test]
fn own_games_are_kept_and_continued() {
    let mut trainer = Trainer::new(tiny_with_everything()).unwrap();
    let first = trainer.advance(1, &CONTINUE).unwrap().clone();
    assert!(first.own_games.len() == 3, "{:?}", first.own_games);
    assert!(first.own_games.is_sorted_by(|one, next| one >= next));
    // The third beam starts near the end of a game, so its own part of the game is short.
    assert!(first.own_games[0] >= 358, "{:?}", first.own_games);
    assert!(first.beams[2].pieces < 150, "{:?}", first.beams);
    let folder = tempfile::tempdir().unwrap();
    TrainingFolder::open(folder.path())
        .unwrap()
        .save(&trainer)
        .unwrap();
    let replays = fs::read_to_string(folder.path().join("own-games.txt")).unwrap();
    let pieces = replays.lines().map(|replay| {
        let (keys, _) = decode(replay).unwrap();
        let game = play(Geometry::STANDARD, Rules::default(), Enemy::Hatetris, &keys);
        assert!(game.is_finished());
        game.turns.len() - 1
    });
    assert!(pieces.eq(first.own_games));
    let mut without = tiny_with_everything();
    without.own_games = None;
    let mut without = Trainer::new(without).unwrap();
    assert!(without.advance(1, &CONTINUE).unwrap().own_games.is_empty());
}

/// Returns a recipe that uses own games and names none, so there are no games before the first finished game.
fn without_first_games() -> Recipe {
    let mut recipe = tiny_with_everything();
    recipe.games.clear();
    recipe.own_games.as_mut().unwrap().first.clear();
    recipe
}

#[test]
fn beams_without_finished_game_give_no_samples_of_games() {
    let mut recipe = without_first_games();
    recipe.pieces = 12;
    recipe.stages[0].lookahead = None;
    let mut without = recipe.clone();
    without.stages[0].game_samples = 0;
    let [with, without] = [recipe, without].map(|recipe| {
        let mut trainer = Trainer::new(recipe).unwrap();
        let record = trainer.advance(1, &CONTINUE).unwrap();
        assert!(record.own_games.is_empty(), "{:?}", record.own_games);
        record.samples
    });
    assert!(with > 0);
    assert_eq!(with, without);
}

#[test]
fn generation_without_games_can_be_cancelled() {
    let mut trainer = Trainer::new(without_first_games()).unwrap();
    assert!(trainer.advance(1, &AtomicBool::new(true)).is_none());
    // A cancelled generation ends after its beams.
    assert!(trainer.records().is_empty());
}

#[test]
fn reset_changes_network_and_keeps_own_games() {
    let mut recipe = tiny_with_everything();
    recipe.publish.from = 100;
    let mut without = Trainer::new(recipe.clone()).unwrap();
    let last = recipe.stages.last_mut().unwrap();
    last.reset = 2;
    last.beams.push(BeamRecipe {
        player: Player::Previous,
        ..last.beams[0].clone()
    });
    let mut expected = Trainer::new(recipe.clone()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let folder = TrainingFolder::open(folder.path()).unwrap();
    folder.save(&expected).unwrap();
    for generation in 1..=6 {
        let before = expected.records().last().cloned();
        let record = expected.advance(1, &CONTINUE).unwrap().clone();
        let mut resumed = folder.load().unwrap().unwrap();
        resumed.advance(1, &CONTINUE).unwrap();
        folder.save(&resumed).unwrap();
        assert_eq!(facts(&resumed), facts(&expected), "generation {generation}");
        let trained = without.advance(1, &CONTINUE).unwrap();
        match generation {
            1 | 2 => assert_eq!(record.fresh_loss, trained.fresh_loss),
            // The first two generations are the first stage. The last stage begins with a reset.
            3 | 5 => {
                assert_ne!(record.fresh_loss, trained.fresh_loss);
                assert!(record.own_games[0] >= before.unwrap().own_games[0]);
            }
            _ => {}
        }
    }
}

#[test]
fn beam_depends_on_noise_seed() {
    let noise = |seed| Noise {
        seed,
        first: 200.0,
        rest: 20.0,
    };
    let wells = |seed| {
        let beam = beam(30, noise(seed));
        beam.depths[20].wells.clone()
    };
    assert_eq!(wells(1), wells(1));
    assert_ne!(wells(1), wells(2));
}

#[test]
fn training_does_not_depend_on_thread_count() {
    let recipe = tiny_with_everything();
    let trained = |threads| {
        let mut trainer = Trainer::new(recipe.clone()).unwrap();
        (0..3).for_each(|_| {
            trainer.advance(threads, &CONTINUE).unwrap();
        });
        facts(&trainer)
    };
    assert_eq!(trained(1), trained(3));
}

#[test]
fn resumed_training_equals_uninterrupted_training() {
    let recipe = tiny_with_everything();
    let mut expected = Trainer::new(recipe.clone()).unwrap();
    let temp = tempfile::tempdir().unwrap();
    let folder = TrainingFolder::open(&temp.path().join("training")).unwrap();
    assert!(folder.load().unwrap().is_none());
    folder.save(&Trainer::new(recipe).unwrap()).unwrap();
    for generation in 1..=4 {
        expected.advance(1, &CONTINUE).unwrap();
        let mut trainer = folder.load().unwrap().unwrap();
        trainer.advance(1, &CONTINUE).unwrap();
        folder.save(&trainer).unwrap();
        assert_eq!(facts(&trainer), facts(&expected), "generation {generation}");
    }
    let network = Network::decode(&fs::read(temp.path().join("training/network")).unwrap());
    assert_eq!(network.unwrap().digest(), expected.network().digest());
    // The buffer holds the samples of two generations.
    assert!(!temp.path().join("training/samples-2").exists());
    assert!(temp.path().join("training/samples-3").exists());
}

#[test]
fn public_games_provide_starts_and_samples() {
    let mut trainer = Trainer::new(tiny_with_everything()).unwrap();
    let record = trainer.advance(1, &CONTINUE).unwrap();
    // The limit of 12 pieces applies only to the first two beams, which start with wells of games.
    let mut pieces: Vec<usize> = record.beams.iter().map(|beam| beam.pieces).collect();
    assert!(pieces[..2].iter().all(|&pieces| pieces <= 12), "{pieces:?}");
    assert!(pieces.split_off(2).iter().any(|&pieces| pieces > 12));
    let mut without = tiny_with_everything();
    without.stages[0].game_samples = 0;
    let mut without = Trainer::new(without).unwrap();
    let fewer = without.advance(1, &CONTINUE).unwrap().samples;
    assert_eq!(record.samples, fewer + 500);
}

#[test]
fn short_searches_provide_samples() {
    let mut trainer = Trainer::new(tiny_with_everything()).unwrap();
    let record = trainer.advance(1, &CONTINUE).unwrap().clone();
    let mut without = tiny_with_everything();
    without.stages[0].lookahead = None;
    let mut without = Trainer::new(without).unwrap();
    let fewer = without.advance(1, &CONTINUE).unwrap();
    assert_eq!(record.samples, fewer.samples + 300);
    assert_eq!(record.beams, fewer.beams);
}

/// One of 64 samples is held out.
#[test]
fn generation_without_held_out_samples_has_no_loss_of_them() {
    let mut recipe = Recipe::from_toml(TINY).unwrap();
    recipe.samples = 10;
    let mut trainer = Trainer::new(recipe).unwrap();
    let record = trainer.advance(1, &CONTINUE).unwrap();
    assert_eq!(record.samples, 30);
    let held_out = [record.fresh_loss, record.fresh_bias, record.held_out_loss];
    assert_eq!(held_out, [None; 3]);
    assert!(record.train_loss > 0.0);
}

#[test]
fn training_can_start_with_built_in_network() {
    let mut recipe = Recipe::from_toml(TINY).unwrap();
    recipe.initial = Some("network".to_owned());
    let trainer = Trainer::new(recipe.clone()).unwrap();
    let shipped = Network::shipped("network").unwrap();
    assert!(trainer.network().weights() == shipped.weights());
    recipe.initial = Some("other".to_owned());
    let error = Trainer::new(recipe).err().unwrap().to_string();
    assert!(
        error.contains("\"other\"") && error.contains("taught"),
        "{error}"
    );
}

#[test]
fn knewjade_plays_with_weights_of_recipe() {
    let recipe = |weights: &str| {
        let player = format!("player = \"knewjade\"{weights}");
        Recipe::from_toml(&TINY.replacen("player = \"patterns\"", &player, 1))
    };
    let first = |weights| {
        let mut trainer = Trainer::new(recipe(weights).unwrap()).unwrap();
        trainer.advance(1, &CONTINUE).unwrap().clone()
    };
    let published = first("");
    assert_eq!(published.beams[0].player, Player::Knewjade);
    assert_ne!(
        first("\nweights = { score = -900.0 }").data_digest,
        published.data_digest
    );
    let error = recipe("\nweights = { holes = 1e9 }")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the weight of holes is 1000000000"),
        "{error}"
    );
    let own = TINY.replacen("player = \"own\"", "player = \"own\"\nweights = {}", 1);
    let error = Recipe::from_toml(&own).unwrap_err().to_string();
    assert!(
        error.contains("`weights`") && error.contains("`knewjade`"),
        "{error}"
    );
}

#[test]
fn network_can_be_trained_without_seeing_clears() {
    for initial in ["", "initial = \"network\"\n"] {
        let recipe = Recipe::from_toml(&format!("clears = false\n{initial}{TINY}")).unwrap();
        let mut trainer = Trainer::new(recipe.clone()).unwrap();
        assert!(!trainer.network().sees_clears());
        let first = trainer.network().digest();
        let loss = |trainer: &mut Trainer| {
            let record = trainer.advance(1, &CONTINUE).unwrap();
            [record.fresh_loss, record.held_out_loss].map(Option::unwrap)
        };
        let [before, after] = loss(&mut trainer);
        assert!(after < before, "{before} {after}");
        assert!(!trainer.network().sees_clears());
        assert_ne!(trainer.network().digest(), first);
        // The recipe in the header contains the setting.
        let bytes = trainer.network().encode();
        assert_eq!(Recipe::from_bytes(&bytes).unwrap(), recipe);
    }
    // A recipe with the default is written as before the setting existed.
    let json = serde_json::to_string(&Recipe::default()).unwrap();
    assert!(!json.contains("clears"));
}

#[test]
fn cancelled_generation_does_not_change_folder() {
    let temp = tempfile::tempdir().unwrap();
    let folder = TrainingFolder::open(temp.path()).unwrap();
    let mut trainer = Trainer::new(Recipe::from_toml(TINY).unwrap()).unwrap();
    trainer.advance(1, &CONTINUE).unwrap();
    folder.save(&trainer).unwrap();
    let before = facts(&trainer);
    assert!(trainer.advance(1, &AtomicBool::new(true)).is_none());
    assert_eq!(facts(&folder.load().unwrap().unwrap()), before);
}

#[test]
fn recipe_is_read_from_network_and_from_toml() {
    let recipe = Recipe::from_toml(TINY).unwrap();
    let trainer = Trainer::new(recipe.clone()).unwrap();
    assert_eq!(
        Recipe::from_bytes(&trainer.network().encode()).unwrap(),
        recipe
    );
    assert_eq!(Recipe::from_bytes(TINY.as_bytes()).unwrap(), recipe);
    assert!(Recipe::from_bytes(b"\xff\x00").is_err());
    let mut damaged = trainer.network().encode();
    damaged[100] ^= 1;
    let error = Recipe::from_bytes(&damaged).unwrap_err();
    assert_eq!(error, RecipeError::NetworkFile(NetworkError::Digest));
}

#[test]
fn documentation_lists_all_settings_of_recipes() {
    let documentation = include_str!("../../docs/recipes.md");
    let sections = documentation.split("\n## ").skip(1);
    let section = |title: &str| sections.clone().find(|text| text.starts_with(title));
    for (title, table) in [
        ("The recipe", ""),
        ("The recipe", "[publish]"),
        ("The recipe", "[own_games]"),
        ("The recipe", "[[games]]"),
        ("The examination", "[exam]"),
        ("Stages", "[[stages]]\ngenerations = 1\nbeams = []"),
        (
            "Short searches",
            "[[stages]]\ngenerations = 1\nbeams = []\n[stages.lookahead]",
        ),
        ("Beams", "[[stages]]\ngenerations = 1\n[[stages.beams]]"),
    ] {
        let (section, unknown) = (section(title).unwrap(), format!("{table}\nunknown = 1"));
        let RecipeError::Toml(error) = Recipe::from_toml(&unknown).unwrap_err() else {
            panic!("the recipe has an unknown setting: {unknown}");
        };
        // The error names the settings that exist: expected one of `seed`, `initial`, ...
        let (_, settings) = error.message().split_once("expected ").unwrap();
        let settings: Vec<&str> = settings.split('`').skip(1).step_by(2).collect();
        assert!(settings.len() > 1, "{error}");
        for setting in settings {
            let name = format!("`{setting}`");
            assert!(section.contains(&name), "{title}: {name}");
        }
    }
    let (_, example) = documentation.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    Recipe::from_toml(example).unwrap();
    let help = include_str!("../../cli/help/train.txt");
    for line in example.lines() {
        assert!(help.contains(&format!("\n  {line}\n")), "{line}");
    }
}

#[test]
fn loading_damaged_checkpoint_or_samples_fails() {
    let mut trainer = Trainer::new(Recipe::from_toml(TINY).unwrap()).unwrap();
    trainer.advance(1, &CONTINUE).unwrap();
    let temp = tempfile::tempdir().unwrap();
    let folder = TrainingFolder::open(temp.path()).unwrap();
    folder.save(&trainer).unwrap();
    for name in ["checkpoint", "samples-1"] {
        let path = temp.path().join(name);
        let good = fs::read(&path).unwrap();
        for at in [0, 8, 14, good.len() / 2, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 4;
            fs::write(&path, bad).unwrap();
            assert!(
                matches!(folder.load(), Err(TrainError::Damaged(_))),
                "{name}: byte {at}"
            );
        }
        fs::write(&path, &good[..good.len() - 1]).unwrap();
        assert!(
            matches!(folder.load(), Err(TrainError::Damaged(_))),
            "{name}: cut"
        );
        fs::write(&path, good).unwrap();
        assert!(folder.load().unwrap().is_some());
    }
}

#[test]
fn folder_is_locked_until_it_is_dropped() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("training");
    let folder = TrainingFolder::open(&path).unwrap();
    let second = TrainingFolder::open(&path).err().unwrap();
    assert!(matches!(&second, TrainError::Lock(FolderLockError::InUse(used)) if *used == path));
    let name = path.to_str().unwrap();
    assert!(second.to_string().starts_with(name), "{second}");
    drop(folder);
    let folder = TrainingFolder::open(&path).unwrap();
    assert!(folder.load().unwrap().is_none());
}

#[test]
fn saved_files_have_documented_format() {
    let mut trainer = Trainer::new(Recipe::from_toml(TINY).unwrap()).unwrap();
    trainer.advance(1, &CONTINUE).unwrap();
    let temp = tempfile::tempdir().unwrap();
    TrainingFolder::open(temp.path())
        .unwrap()
        .save(&trainer)
        .unwrap();
    let checkpoint = fs::read(temp.path().join("checkpoint")).unwrap();
    let (begin, rest) = checkpoint.split_at(16);
    assert_eq!(&begin[..12], b"hatechk\n\x01\0\0\0");
    let length = u32::from_le_bytes(begin[12..].try_into().unwrap()) as usize;
    let text: serde_json::Value = serde_json::from_slice(&rest[..length]).unwrap();
    assert_eq!(text["recipe"]["seed"], 5);
    assert_eq!(text["records"][0]["generation"], 1);
    assert!(text["steps"].as_u64().unwrap() > 0);
    let rows = hatebeam_search::FEATURES + 2;
    assert_eq!(rest.len(), length + 5 * rows * 16 * 4 + 32);
    let samples = fs::read(temp.path().join("samples-1")).unwrap();
    assert_eq!(&samples[..12], b"hatesmp\n\x01\0\0\0");
    assert_eq!((samples.len() - 12 - 32) % 24, 0);
    let network = fs::read(temp.path().join("network")).unwrap();
    assert_eq!(network, trainer.network().encode());
}

#[test]
fn trained_network_places_more_pieces_than_untrained_network() {
    let mut recipe = Recipe::from_toml(TINY).unwrap();
    recipe.samples = 20_000;
    recipe.epoch = 60_000;
    recipe.average = 0.0;
    recipe.publish.from = 1000;
    recipe.stages[0].generations = 100;
    recipe.exam.every = 0;
    let mut trainer = Trainer::new(recipe).unwrap();
    let exam = ExamRecipe {
        widths: vec![60, 80, 100],
        ..ExamRecipe::default()
    };
    let pieces = |trainer: &Trainer| -> usize {
        let results = examine(
            &emulator(),
            &Arc::clone(trainer.network()),
            &exam,
            2,
            &CONTINUE,
        );
        results.iter().map(|result| result.pieces).sum()
    };
    let before = pieces(&trainer);
    (0..5).for_each(|_| {
        trainer.advance(2, &CONTINUE).unwrap();
    });
    let after = pieces(&trainer);
    assert!(
        after > before * 4 / 3,
        "{before} pieces before, {after} after"
    );
}

#[test]
fn recipe_errors_name_the_field() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let error = Recipe::from_toml(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let unknown = Recipe::from_toml("sed = 1").unwrap_err();
    let source = std::error::Error::source(&unknown).unwrap().to_string();
    assert!(source.contains("sed") && !unknown.to_string().contains("sed"));
    check("samples = 0", "samples");
    check("rate = [2.0, 1.0]", "rate");
    check("publish = { from = 1, every = 0 }", "publish");
    check("stages = []", "stages");
    check("[[games]]\nname = \"mine\"", "tim-157");
    check("[[games]]\nname = \"tim-157\"\npieces = 0", "pieces");
    check("[own_games]\nkeep = 0", "keep");
    check("game_pieces = 0", "game_pieces");
    check("[exam]\npieces = 0", "exam.pieces");
    check("[exam]\npieces = 2000000", "exam.pieces");
    check("[own_games]\nkeep = 1\nfirst = [\"mine\"]", "chains-148");
    check("[own_games]\nkeep = 1\nfirst = [\"LLDD\"]", "replay");
    // The header of a network contains the recipe, and has a maximum length.
    let many = "\"david-and-felipe-3711\",".repeat(60_000);
    let many = format!("[own_games]\nkeep = 1\nfirst = [{many}]");
    check(&many, "fewer games");
    let stage = "[[stages]]\ngenerations = 1";
    let beam = "[[stages.beams]]\nplayer = \"own\"\nwidths = [1, 2]\nnoise = 1.0";
    for setting in ["back = [20, 60]", "longest = 3", "rejoin = true"] {
        let text = format!("{stage}\n{beam}\n{setting}");
        check(&text, "only to beams with `start = \"games\"`");
    }
    check(&format!("{stage}\ngame_samples = 5\n{beam}"), "[[games]]");
    let lookahead = "lookahead = { samples = 5, width = 0, pieces = 1, discount = 1.0 }";
    check(&format!("{stage}\n{lookahead}\n{beam}"), "lookahead");
}

#[test]
fn recipe_with_too_many_beams_or_pieces_is_refused() {
    let checked = |beams: &[&str]| {
        let beam = "[[stages.beams]]\nplayer = \"own\"\nwidths = [1, 2]\nnoise = 1.0\n";
        let beams = beams.iter().map(|settings| format!("{beam}{settings}\n"));
        let text = beams.collect::<String>();
        let recipe = Recipe::from_toml(&format!("[[stages]]\ngenerations = 1\n{text}"));
        recipe.map_err(|error| error.to_string())
    };
    assert!(checked(&["count = 65535", "pieces = 1048576"]).is_ok());
    let largest = ["count = 9223372036854775807"; 3];
    for beams in [&["count = 65535", "count = 2"], &largest[..]] {
        let error = checked(beams).unwrap_err();
        assert!(
            error.contains("count") && error.contains("65536"),
            "{error}"
        );
    }
    for pieces in ["pieces = 0", "pieces = 1048577"] {
        let error = checked(&[pieces]).unwrap_err();
        assert!(error.contains("pieces of a beam"), "{error}");
    }
}

#[test]
fn last_stage_of_recipe_continues() {
    let recipe = Recipe::from_toml(TINY).unwrap();
    assert_eq!(recipe.stage(2).beams.len(), 2);
    assert_eq!(recipe.stage(3).beams.len(), 1);
    assert_eq!(recipe.stage(1000).beams.len(), 1);
}

#[test]
fn recipes_of_the_project_are_valid() {
    let mut recipes = 0;
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/recipes")).unwrap() {
        let path = entry.unwrap().path();
        let recipe = Recipe::from_toml(&fs::read_to_string(&path).unwrap());
        assert!(recipe.is_ok(), "{}: {recipe:?}", path.display());
        recipes += 1;
    }
    assert!(recipes >= 10, "{recipes}");
    for name in Network::SHIPPED {
        let recipe = Recipe::of_network(Network::shipped(name).unwrap());
        assert!(recipe.is_ok(), "{name}: {recipe:?}");
    }
}
