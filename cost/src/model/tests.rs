use super::*;

/// Constants of the program at the time of the measurements.
const PROGRAM: ProgramConstants = ProgramConstants {
    batch_children: 4096,
    queued_batches: 4,
    floor_interval: Duration::from_millis(20),
    part_bytes: 16 << 20,
    parallel_parts: 4,
};

pub(crate) fn inputs() -> ModelInputs {
    ModelInputs::measured(EvaluatorKind::Patterns, Quiescence::Off, PROGRAM)
}

fn depth(inputs: &ModelInputs, machine: &MachineProfile, width: u64, workers: u32) -> DepthModel {
    model_depth(inputs, machine, Beam::new(width, None), workers)
}

fn fewest_workers(inputs: &ModelInputs, machine: &MachineProfile, width: u64) -> Option<u32> {
    super::fewest_workers(inputs, machine, Beam::new(width, None))
}

/// Returns a machine whose cores are the bottleneck at a large width.
fn machine() -> MachineProfile {
    MachineProfile {
        threads: 72.0,
        cores: 36.0,
        core_speed: 0.65,
        memory_bytes: 144.0 * f64::from(1 << 30),
        network_bytes_per_second: 25e9 / 8.0,
        disk_bytes_per_second: 1.4e9,
    }
}

#[test]
fn more_machines_are_faster_if_cores_are_the_bottleneck() {
    for width in [100_000, 1_000_000, 25_000_000, 1_000_000_000] {
        let mut before = depth(&inputs(), &machine(), width, 1);
        for workers in [2, 4, 8, 16, 32, 64, 128] {
            let now = depth(&inputs(), &machine(), width, workers);
            if now.limit == Bottleneck::Cores {
                assert!(now.seconds < before.seconds, "{width} {workers}");
            }
            before = now;
        }
    }
}

#[test]
fn time_is_linear_in_width_if_cores_are_the_bottleneck() {
    let narrow = depth(&inputs(), &machine(), 250_000_000, 2);
    let wide = depth(&inputs(), &machine(), 1_000_000_000, 2);
    assert_eq!(narrow.limit, Bottleneck::Cores);
    assert_eq!(wide.limit, Bottleneck::Cores);
    let ratio = wide.seconds / narrow.seconds;
    assert!((3.9..4.1).contains(&ratio), "{ratio}");
}

#[test]
fn slowest_resource_is_the_bottleneck() {
    let wide = 100_000_000;
    let slow_network = MachineProfile {
        network_bytes_per_second: 1e8,
        ..machine()
    };
    let slow_disk = MachineProfile {
        disk_bytes_per_second: 1e7,
        ..machine()
    };
    let slow_store = ModelInputs {
        upload_bytes_per_second: 1e6,
        ..inputs()
    };
    let quick_store = ModelInputs {
        put_seconds: 0.001,
        ..inputs()
    };
    let few_requests = ModelInputs {
        puts_per_second: 0.1,
        ..inputs()
    };
    for (limit, depth) in [
        ("cores", depth(&inputs(), &machine(), wide, 4)),
        ("network", depth(&inputs(), &slow_network, wide, 4)),
        ("disk", depth(&inputs(), &slow_disk, wide, 4)),
        ("commit", depth(&slow_store, &machine(), wide, 4)),
        ("requests", depth(&few_requests, &machine(), wide, 4)),
        ("rounds", depth(&quick_store, &machine(), 10_000, 64)),
    ] {
        assert_eq!(depth.limit.name(), limit, "{depth:?}");
    }
    assert!(depth(&inputs(), &machine(), wide, 1).sent == 0.0);
}

#[test]
fn more_workers_wait_longer_for_the_slowest_request() {
    let inputs = inputs();
    let seconds = |workers, waits| slowest_seconds(&inputs, workers, waits);
    // A single worker waits for the mean time.
    for waits in [1, 3] {
        let mean = f64::from(waits) * inputs.put_seconds;
        assert!((seconds(1.0, waits) - mean).abs() < 1e-4, "{waits}");
    }
    // The expected maximum of N exponentially distributed times is the Nth harmonic number times their mean.
    let harmonic: f64 = (1..=64).map(|at| 1.0 / f64::from(at)).sum();
    let expected = inputs.put_seconds * (0.5 + 0.5 * harmonic);
    assert!((seconds(64.0, 1) - expected).abs() < 1e-4);
    assert!(seconds(64.0, 3) > 1.5 * seconds(1.0, 3));
    assert!(seconds(64.0, 3) < 3.0 * seconds(64.0, 1));
}

/// Compares the model with the measurements on the loopback interface in `docs/cluster-model.md`.
#[test]
fn sent_share_agrees_with_measurements() {
    for (width, children_per_well, workers, seconds, measured) in [
        (10_000u64, 22.9, 2.0, 0.26, 0.510),
        (100_000, 22.8, 2.0, 1.35, 0.276),
        (100_000, 22.8, 4.0, 0.98, 0.298),
        (100_000, 22.8, 8.0, 0.87, 0.364),
        (250_000, 23.6, 2.0, 1.25, 0.252),
        (250_000, 24.3, 8.0, 2.50, 0.283),
        (20_000, 24.1, 8.0, 0.36, 0.616),
    ] {
        let children = width as f64 * children_per_well;
        let stream = Stream {
            children: children / (workers * workers),
            threads: 1.0,
            seconds,
        };
        // The measured program began each depth without an estimate.
        let inputs = ModelInputs {
            estimate_excess: f64::INFINITY,
            ..inputs()
        };
        let ratio = stream.part_sent(&inputs, Beam::new(width, None), children) / measured;
        // With 20,000 wells and eight workers, each stream has only two batches, so the model is inaccurate.
        let slack = if width == 20_000 { 0.35 } else { 0.2 };
        assert!((ratio - 1.0).abs() < slack, "{width} {workers}: {ratio:.3}");
    }
}

/// Compares the model with the output of the test `measure_children_sent` in `worker/src/executor/tests.rs`.
#[test]
fn sent_share_with_estimated_floors_agrees_with_measurements() {
    for (width, children_per_well, workers, seconds, without, with) in [
        (10_000u64, 23.8, 2.0, 0.2, 0.4046, 0.1027),
        (100_000, 25.2, 2.0, 1.0, 0.2539, 0.0852),
        (100_000, 25.2, 4.0, 1.0, 0.2882, 0.0859),
        (250_000, 24.6, 2.0, 2.5, 0.2447, 0.1034),
    ] {
        let children = width as f64 * children_per_well;
        let stream = Stream {
            children: children / (workers * workers),
            threads: 1.0,
            seconds,
        };
        let beam = Beam::new(width, Some(4));
        for (estimate_excess, measured) in
            [(f64::INFINITY, without), (inputs().estimate_excess, with)]
        {
            let inputs = ModelInputs {
                estimate_excess,
                ..inputs()
            };
            let ratio = stream.part_sent(&inputs, beam, children) / measured;
            assert!((ratio - 1.0).abs() < 0.2, "{width} {workers} {ratio:.3}");
        }
    }
}

#[test]
fn shards_are_split_for_many_machines() {
    let depth = |width, shards, workers| {
        let beam = Beam::new(width, shards);
        model_depth(&inputs(), &machine(), beam, workers)
    };
    let (one, all) = (depth(25_000_000, None, 1), depth(25_000_000, None, 64));
    assert_eq!(Beam::new(25_000_000, None).shards, 64);
    assert_eq!((one.shards, all.shards), (128, 512));
    // 64 shards would give each machine one shard, which one thread writes.
    let unsplit = Work {
        inputs: &inputs(),
        machine: &machine(),
        beam: Beam::new(25_000_000, None),
        workers: 64.0,
        wells: 25_000_000.0 / 64.0,
        share: 1.0 / 64.0,
        power: machine().power(&inputs()),
    };
    let upload = all.stored_bytes / 64.0;
    assert!(unsplit.commit_seconds(upload) > 1.3 * all.commit_seconds);
    // Shards of narrow beams are not split, so some machines have no work.
    let few = depth(1_000_000, Some(16), 64);
    let enough = depth(1_000_000, Some(64), 64);
    assert_eq!((few.shards, enough.shards), (16, 64));
    assert!(few.cores_seconds > 3.0 * enough.cores_seconds);
}

#[test]
fn beam_that_exceeds_memory_does_not_fit() {
    let small = MachineProfile {
        memory_bytes: f64::from(1 << 30),
        ..machine()
    };
    let fewest = fewest_workers(&inputs(), &small, 25_000_000).unwrap();
    assert!(depth(&inputs(), &small, 25_000_000, fewest).fits);
    assert!(!depth(&inputs(), &small, 25_000_000, fewest - 1).fits);
    let tiny = MachineProfile {
        memory_bytes: 1e8,
        ..machine()
    };
    assert_eq!(fewest_workers(&inputs(), &tiny, 25_000_000), None);
}

#[test]
fn each_thread_needs_memory_for_its_buffers() {
    let with = |threads| MachineProfile {
        threads,
        ..machine()
    };
    let buffers = |width| {
        let memory = |threads| depth(&inputs(), &with(threads), width, 1).memory_bytes;
        memory(72.0) - memory(0.0)
    };
    // 65 children of 40 bytes for each of 62 tables, and then at most 257 groups of 4,096 children.
    assert_eq!(buffers(1_000_000), 72.0 * 62.0 * 65.0 * 40.0);
    assert_eq!(buffers(1_000_000_000), 72.0 * 257.0 * 4096.0 * 40.0);
}

#[test]
fn children_that_are_scored_again_need_memory() {
    let of = |quiescence| ModelInputs::measured(EvaluatorKind::Patterns, quiescence, PROGRAM);
    let (one, best) = (of(Quiescence::First), of(Quiescence::FirstOfBest));
    assert!(!one.has_time && !best.has_time);
    assert!(best.ns_per_child < one.ns_per_child && best.rounds > one.rounds);
    let memory = |inputs, width| depth(inputs, &machine(), width, 2).memory_bytes;
    assert_eq!(
        memory(&best, 10_000_000),
        memory(&one, 30_000_000),
        "three children for each well are kept"
    );
}

#[test]
fn every_worker_needs_memory_for_the_games_of_all_wells() {
    let exact = inputs().with_loop_rule(700);
    let more = |workers| {
        let of = |inputs| depth(inputs, &machine(), 10_000_000, workers);
        let (with, without) = (of(&exact), of(&inputs()));
        assert_eq!(with.network_seconds > without.network_seconds, workers > 1);
        with.memory_bytes - without.memory_bytes
    };
    assert_eq!([1, 2, 16].map(more), [7e9; 3]);
    // The memory of more machines does not help.
    assert_eq!(fewest_workers(&exact, &machine(), 1 << 30), None);
    assert!(fewest_workers(&inputs(), &machine(), 1 << 30).is_some());
}

#[test]
fn extreme_inputs_give_finite_results() {
    for width in [1, 2, 1 << 30] {
        for workers in [1, 2, 63, 4096] {
            for children_per_well in [1e-3, 1e9] {
                let inputs = ModelInputs {
                    children_per_well,
                    ..inputs()
                };
                let depth = depth(&inputs, &machine(), width, workers);
                assert!(
                    depth.seconds.is_finite() && depth.seconds > 0.0,
                    "{depth:?}"
                );
                assert!(depth.sent <= depth.children, "{depth:?}");
            }
        }
    }
}
