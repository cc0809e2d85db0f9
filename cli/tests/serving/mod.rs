//! The command as a server in a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

/// A running `mcpbolt serve`; ends when dropped.
pub struct Serving {
    pub process: Child,
    pub address: String,
}

impl Serving {
    /// Starts the command; it prints its address when it is ready.
    pub fn with(args: &[&str]) -> Self {
        Self::with_env(args, &[])
    }

    /// The same, with these variables in its environment.
    pub fn with_env(args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_mcpbolt"))
            .args(args)
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        let mut output = BufReader::new(process.stdout.as_mut().unwrap());
        output.read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        Self { process, address }
    }

    pub fn run(&self, args: &[&str]) -> Output {
        let mut run = Command::new(env!("CARGO_BIN_EXE_mcpbolt"));
        run.args(args)
            .args(["--at", &self.address])
            .output()
            .unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
