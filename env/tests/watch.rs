//! Tests of the `watch` channel.

use hatebeam_env::watch::{self, Closed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::timeout;

#[tokio::test]
async fn receiver_is_notified_of_the_last_value_once() {
    let (sender, mut receiver) = watch::channel(1);
    assert_eq!(receiver.has_changed(), Ok(false));
    sender.send_modify(|value| *value += 1);
    assert_eq!(sender.send_replace(5), 2);
    assert_eq!(receiver.changed().await, Ok(()));
    assert_eq!(*receiver.borrow(), 5);
    assert!(timeout(Duration::ZERO, receiver.changed()).await.is_err());
    let late = sender.subscribe();
    assert_eq!(late.has_changed(), Ok(false));
    assert!(!sender.send_if_modified(|_| false));
    assert_eq!(late.has_changed(), Ok(false));
}

#[tokio::test]
async fn wait_for_checks_the_current_value_and_later_ones() {
    let (sender, mut receiver) = watch::channel(7);
    receiver.wait_for(|value| *value == 7).await.unwrap();
    let waits = tokio::spawn(async move {
        let met = receiver.wait_for(|value| *value > 8).await;
        met.map(|()| *receiver.borrow())
    });
    for value in [8, 9] {
        tokio::task::yield_now().await;
        sender.send(value).unwrap();
    }
    assert_eq!(waits.await.unwrap(), Ok(9));
}

#[tokio::test]
async fn receiver_reports_closed_channel_after_the_last_value() {
    let (sender, mut receiver) = watch::channel(0);
    let other = sender.clone();
    other.send(1).unwrap();
    drop((sender, other));
    assert_eq!(receiver.changed().await, Ok(()));
    assert_eq!(receiver.changed().await, Err(Closed));
    assert!(receiver.wait_for(|value| *value == 2).await.is_err());
    let (sender, receiver) = watch::channel(0);
    let waits = tokio::spawn(async move { receiver.clone().changed().await });
    tokio::task::yield_now().await;
    drop(sender);
    assert_eq!(waits.await.unwrap(), Err(Closed));
    let sender = watch::Sender::new(0);
    assert_eq!(sender.send(1), Err(Closed));
}

#[tokio::test]
async fn receivers_wake_in_the_order_in_which_they_started_to_wait() {
    for _ in 0..20 {
        let sender = watch::Sender::new(0);
        let woken = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for number in 0..10 {
            let (mut receiver, woken) = (sender.subscribe(), Arc::clone(&woken));
            tasks.push(tokio::spawn(async move {
                receiver.changed().await.unwrap();
                woken.lock().unwrap().push(number);
            }));
        }
        tokio::task::yield_now().await;
        sender.send(1).unwrap();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*woken.lock().unwrap(), (0..10).collect::<Vec<_>>());
    }
}
