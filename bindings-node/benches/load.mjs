// Loads a package, says so with a line, and stays: `node load.mjs [PACKAGE]`.
const name = process.argv[2];
if (name) await import(name);
console.log();
process.stdin.resume();
