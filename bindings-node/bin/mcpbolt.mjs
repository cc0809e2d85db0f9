#!/usr/bin/env node
// The command mcpbolt. `run` serves the server that a module exports, `dev` does so and restarts it when its files change,
// `exec` runs a program unchanged; everything else is the engine's own command.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const [command, ...args] = process.argv.slice(2);

// Each command loads what it needs: a program that `exec` runs may need none of the rest.
if (command === 'exec') require('../dist/register/exec.js').main(args);
else if (command === 'run' || command === 'dev') {
    try {
        await require(`../dist/command/${command}.js`).main(args, fileURLToPath(import.meta.url));
    } catch (error) {
        const isWrong = error instanceof require('../dist/command/arguments.js').Wrong;
        console.error(isWrong ? `mcpbolt ${command}: error: ${error.message}; see mcpbolt ${command} --help` : `mcpbolt: ${error?.stack ?? error}`);
        process.exit(isWrong ? 2 : 1);
    }
} else process.exitCode = require('../dist/native.js').native.command([command, ...args].filter(word => word !== undefined));
