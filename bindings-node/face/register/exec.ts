/** `mcpbolt exec`: runs a program unchanged, with the servers that it starts on the engine. */
import Module from 'node:module';
import { install, isOff } from './install';
import { NoProgram, optionsOf, program } from './program';
import { requireNode } from './runtime';

const USAGE = `usage: mcpbolt exec [--yes] PROGRAM [ARGUMENT...]

Run a program unchanged. Where it serves stdin and stdout or HTTP with the official SDK, the engine does so in its place.

  mcpbolt exec server.js                                          a file
  mcpbolt exec @modelcontextprotocol/server-filesystem ~/docs     an installed package
  mcpbolt exec mcp-server-filesystem ~/docs                       a program of an installed package
  mcpbolt exec --yes @modelcontextprotocol/server-filesystem .    a package that npx installs if it is not there

TypeScript needs a loader of yours: NODE_OPTIONS="--import tsx" mcpbolt exec server.ts
Environment: MCPBOLT=off leaves the program as it is; MCPBOLT_REPORT=1 prints what runs where, and why, to stderr.
`;

/** @internal Runs the program that the arguments name. Exits with status 2 if there is none. */
export function main(args: readonly string[]): void {
    if (!isOff()) requireNode();
    const mayFetch = args[0] === '--yes' || args[0] === '-y';
    const [name, ...rest] = mayFetch ? args.slice(1) : args;
    if (name === undefined || name === '-h' || name === '--help') {
        (name === undefined ? process.stderr : process.stdout).write(USAGE);
        process.exitCode = name === undefined ? 2 : 0;
        return;
    }
    try {
        if (name.startsWith('-')) throw new NoProgram(`there is no option ${name}`);
        const file = program(name, mayFetch);
        withOptions(optionsOf(file), file, args);
        process.argv.splice(1, process.argv.length, file, ...rest);
    } catch (error) {
        if (!(error instanceof NoProgram)) throw error;
        process.stderr.write(`mcpbolt exec: error: ${error.message}\n`);
        process.exitCode = 2;
        return;
    }
    install(true);
    // Its exceptions are uncaught ones.
    process.nextTick(() => Module.runMain());
}

/** In the environment of a process that was replaced by one with the options of its program. */
const REPLACED = 'MCPBOLT_REPLACED';

/** Replaces this process by one with the options for Node that the program's first line has, unless it has them. */
function withOptions(options: readonly string[], file: string, args: readonly string[]): void {
    const isReplaced = process.env[REPLACED] !== undefined;
    delete process.env[REPLACED];
    if (isReplaced || options.every(option => process.execArgv.includes(option))) return;
    process.env[REPLACED] = '1';
    try {
        const { native } = require('../native') as typeof import('../native');
        native.becomeProgram(process.execPath, [...process.execArgv, ...options, process.argv[1]!, 'exec', ...args]);
    } catch (error) {
        const command = ['node', ...options, '--import', 'mcpbolt/register', file].join(' ');
        throw new NoProgram(`${file} needs options of node (${(error as Error).message}); run it as ${command}`);
    }
}
