//! Tools over a service of any type that keeps data.

use std::sync::{Mutex, PoisonError};

use mcpbolt::prelude::*;

trait DataService: Send + Sync + 'static {
    fn get_data(&self) -> String;
    fn set_data(&self, data: String);
}

struct MemoryDataService(Mutex<String>);

impl DataService for MemoryDataService {
    fn get_data(&self) -> String {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set_data(&self, data: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = data;
    }
}

struct GenericService<S>(S);

#[tools]
impl<S: DataService> GenericService<S> {
    /// get memory from service
    #[tool]
    fn get_data(&self) -> String {
        self.0.get_data()
    }

    /// set memory to service
    #[tool]
    fn set_data(&self, data: String) -> String {
        let told = format!("Current memory: {data}");
        self.0.set_data(data);
        told
    }
}

fn main() -> anyhow::Result<()> {
    let memory = MemoryDataService(Mutex::new("initial data".to_owned()));
    let server = Server::builder("memory", "1.0.0")
        .instructions("generic data service")
        .with(GenericService(memory));
    Ok(server.build()?.run()?)
}
