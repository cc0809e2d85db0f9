//! `publish`, `subscribe`.

use std::time::Duration;

use tokio::time::timeout;

use crate::stores::{SOON, fresh, on_every_store};

#[test]
fn hints_reach_every_subscription_to_their_topic() {
    on_every_store(async |world| {
        let (topic, other) = (fresh("topic"), fresh("topic"));
        let (one, two, three) = (world.connect(), world.connect(), world.connect());
        let mut all = Vec::new();
        for store in [&one, &one, &two] {
            all.push(store.subscribe(&topic).await.unwrap());
        }
        let mut apart = two.subscribe(&other).await.unwrap();
        for publisher in [&one, &two, &three] {
            publisher.publish(&topic).await.unwrap();
            for subscription in &mut all {
                timeout(SOON, subscription.hinted()).await.expect("a hint");
            }
        }
        // The topic of a subscription goes with the last one, and can be subscribed to again.
        all.truncate(1);
        three.publish(&topic).await.unwrap();
        timeout(SOON, all[0].hinted()).await.expect("a hint");
        all.clear();
        three.publish(&topic).await.unwrap();
        let mut again = two.subscribe(&topic).await.unwrap();
        three.publish(&topic).await.unwrap();
        timeout(SOON, again.hinted()).await.expect("a hint");
        three.publish(&other).await.unwrap();
        timeout(SOON, apart.hinted()).await.expect("a hint");
        let silence = timeout(Duration::from_millis(50), apart.hinted()).await;
        assert!(silence.is_err(), "hints of another topic");
    });
}
