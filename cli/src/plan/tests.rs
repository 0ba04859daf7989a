use super::*;

fn inputs() -> Inputs {
    Inputs::measured(EvaluatorKind::Patterns, Quiescence::Off)
}

fn depth(inputs: &Inputs, machine: &Machine, width: u64, workers: u32) -> Depth {
    model::depth(inputs, machine, Beam::new(width, None), workers)
}

fn fewest_workers(inputs: &Inputs, machine: &Machine, width: u64) -> Option<u32> {
    model::fewest_workers(inputs, machine, Beam::new(width, None))
}

/// A machine that nothing but its cores limits.
fn machine() -> Machine {
    Machine {
        threads: 72.0,
        cores: 36.0,
        core_speed: 0.65,
        memory_bytes: 144.0 * f64::from(1 << 30),
        network_bytes_per_second: 25e9 / 8.0,
        disk_bytes_per_second: 1.4e9,
    }
}

#[test]
fn counts_are_read() {
    for (text, counts) in [
        ("4", &[4][..]),
        ("1,2,4", &[1, 2, 4]),
        ("1..8", &[1, 2, 4, 8]),
        ("3..20", &[3, 6, 12, 20]),
        ("5..5", &[5]),
        ("4096", &[4096]),
    ] {
        assert_eq!(parse_counts(text), Ok(Counts(counts.to_vec())), "{text}");
    }
    for text in [
        "",
        "0",
        "-1",
        "4097",
        "1,,2",
        "1,0",
        "8..1",
        "0..4",
        "..",
        "1..",
        "x",
        "1...3",
        "99999999999",
    ] {
        assert!(parse_counts(text).is_err(), "{text}");
    }
}

#[test]
fn more_machines_are_never_slower_while_cores_limit() {
    for width in [100_000, 1_000_000, 25_000_000, 1_000_000_000] {
        let mut before = depth(&inputs(), &machine(), width, 1);
        for workers in [2, 4, 8, 16, 32, 64, 128] {
            let now = depth(&inputs(), &machine(), width, workers);
            if now.limit == model::Limit::Cores {
                assert!(now.seconds < before.seconds, "{width} {workers}");
            }
            before = now;
        }
    }
}

#[test]
fn time_is_linear_in_width_while_cores_limit() {
    let narrow = depth(&inputs(), &machine(), 250_000_000, 2);
    let wide = depth(&inputs(), &machine(), 1_000_000_000, 2);
    assert_eq!(narrow.limit, model::Limit::Cores);
    assert_eq!(wide.limit, model::Limit::Cores);
    let ratio = wide.seconds / narrow.seconds;
    assert!((3.9..4.1).contains(&ratio), "{ratio}");
}

#[test]
fn what_is_scarce_is_what_limits() {
    let wide = 100_000_000;
    let slow_network = Machine {
        network_bytes_per_second: 1e8,
        ..machine()
    };
    let slow_disk = Machine {
        disk_bytes_per_second: 1e7,
        ..machine()
    };
    let slow_store = Inputs {
        upload_bytes_per_second: 1e6,
        ..inputs()
    };
    let quick_store = Inputs {
        put_seconds: 0.001,
        ..inputs()
    };
    let few_requests = Inputs {
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

/// What was measured on loopback, thread by thread: `docs/cluster-model.md`.
#[test]
fn the_part_that_is_sent_is_the_measured_one() {
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
        let stream = model::Stream {
            children: children / (workers * workers),
            threads: 1.0,
            seconds,
        };
        let ratio = stream.part_sent(&inputs(), Beam::new(width, None), children) / measured;
        // Twenty thousand wells on eight workers are two batches a stream: there it is rough.
        let slack = if width == 20_000 { 0.35 } else { 0.2 };
        assert!((ratio - 1.0).abs() < slack, "{width} {workers}: {ratio:.3}");
    }
}

#[test]
fn more_shards_shorten_the_commit() {
    let beam = |shards| Beam::new(25_000_000, shards);
    assert_eq!(beam(None).shards, 64);
    let usual = model::depth(&inputs(), &machine(), beam(None), 64);
    let many = model::depth(&inputs(), &machine(), beam(Some(2048)), 64);
    assert!(many.commit_seconds < usual.commit_seconds);
    assert!(many.seconds < usual.seconds);
    // Fewer shards than machines leave some of them without work.
    let few = model::depth(&inputs(), &machine(), beam(Some(16)), 64);
    assert!(few.cores_seconds > 3.0 * usual.cores_seconds);
}

#[test]
fn what_does_not_fit_is_said() {
    let small = Machine {
        memory_bytes: f64::from(1 << 30),
        ..machine()
    };
    let fewest = fewest_workers(&inputs(), &small, 25_000_000).unwrap();
    assert!(depth(&inputs(), &small, 25_000_000, fewest).fits);
    assert!(!depth(&inputs(), &small, 25_000_000, fewest - 1).fits);
    let tiny = Machine {
        memory_bytes: 1e8,
        ..machine()
    };
    assert_eq!(fewest_workers(&inputs(), &tiny, 25_000_000), None);
}

#[test]
fn numbers_stay_numbers_at_the_ends() {
    for width in [1, 2, 1 << 30] {
        for workers in [1, 2, 63, 4096] {
            for children_per_well in [1e-3, 1e9] {
                let inputs = Inputs {
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
