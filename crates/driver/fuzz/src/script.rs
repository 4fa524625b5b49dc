//! Compiles a script and runs its transactions on a session that has no server.

use crate::stand_in::StandIn;
use dyno_driver::error::Result;
use dyno_driver::io::{block_on, Backend};
use dyno_driver::random::Random;
use dyno_driver::workload::{with_workload, Circumstances, Place, WithWorkload, Workload};

/// Writes `text` to a file of this ending and runs it as a workload.
pub fn run_script(text: &[u8], ending: &str) {
    let name = format!("dyno-fuzz-{}.{ending}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).expect("the folder for temporary files can be written");
    let options = serde_json::json!({"file": path}).as_object().cloned().unwrap_or_default();
    let _ = with_workload("script", &options, &Circumstances::default(), Transactions);
}

struct Transactions;

impl WithWorkload for Transactions {
    type Output = ();

    fn with<W: Workload>(self, workload: W) -> Result<()> {
        // Sleeps move the simulated clock.
        dyno_driver::clock::simulate(Some(0));
        let running = async {
            let mut session = StandIn::silent();
            let mut random = Random::new(1, 1);
            for part in 0..workload.load_parts().min(2) {
                let _ = workload.load(part, &mut session, random).await;
            }
            let Ok(mut client) =
                workload.client(&mut session, Place { client: 0, clients: 1, cut: None }).await
            else {
                return;
            };
            for kind in 0..workload.transactions().len().min(8) {
                workload.pause(kind, &mut random);
                for _ in 0..2 {
                    session.statements = 0;
                    let _ = workload.perform(kind, &mut client, &mut session, &mut random).await;
                }
            }
            let _ = workload.check(&mut session, Default::default()).await;
        };
        block_on(Backend::Simulated, running, || false).map(|_| ())
    }
}
