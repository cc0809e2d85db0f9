/** `mcpbolt dev`: runs a server as `mcpbolt run` does, and restarts it when its files change. */
import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, relative, resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { argumentsOf, SHARED, Wrong, type Arguments } from './arguments';
import { Relay, type Piped } from './relay';
import { changes, looked, MAX_LOOKED } from './watch';

const USAGE = `usage: mcpbolt dev MODULE[:NAME] [ADDRESS] [OPTION...]

Run a server as mcpbolt run does, and restart it when its files change.

  mcpbolt dev server.mjs                    on stdin and stdout: clients stay connected
  mcpbolt dev server.mjs:make --http :8000  at http://127.0.0.1:8000/mcp: sessions end with each restart

The JavaScript, TypeScript and JSON files of the server's folder, and of each --watch folder, are watched. On stdin and
stdout, requests in flight at a restart may finish within --grace; later ones get an error, and what the server has asked
the client is cancelled. The client is told that the lists may have changed, and goes on listening to changes (subscriptions/listen); subscriptions of revisions before 2026-07-28,
tasks and the state of the old server are gone.

  --watch FOLDER             a further folder whose files are watched
${SHARED}
`;

/** Time that a process has to end beyond the grace period, in ms. */
const FAREWELL = 2000;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** @internal Runs until the client has gone or a signal arrives. `program` is the file of the command itself. */
export async function main(words: readonly string[], program: string): Promise<void> {
    const given = argumentsOf(words, 'dev');
    if (given === undefined) return void process.stdout.write(USAGE);
    for (const folder of given.watch)
        if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw new Wrong(`there is no folder ${folder}`);
    const folders = [dirname(resolve(given.file)), ...given.watch.map(folder => resolve(folder))];
    const stopping = new AbortController();
    const stop = () => stopping.abort();
    for (const signal of SIGNALS) process.on(signal, stop);
    const relay = given.address === 'stdio:' ? new Relay(process, stop) : undefined;
    const server = new Process([program, 'run', ...passedOn(given)], given.graceMs + FAREWELL, relay);
    const before = await looked(folders, () => say(`of the files and folders there, only ${MAX_LOOKED} are watched`));
    server.start();
    for await (const paths of changes(folders, before, stopping.signal)) {
        say(`${paths.map(path => relative('', path)).sort().join(', ')} changed; restarting`);
        await server.stop();
        if (!stopping.signal.aborted) server.start();
    }
    process.exitCode = await server.stop();
    // A client that does not close its end must not keep this process alive.
    process.stdin.destroy();
}

/** The arguments of the server's process. */
function passedOn({ target, address, anonymous, graceMs, report }: Arguments): string[] {
    return [target, '--at', address, '--grace', String(graceMs / 1000), ...(anonymous ? ['--anonymous'] : []), ...(report ? ['--report'] : [])];
}

function say(text: string): void {
    process.stderr.write(`mcpbolt dev: ${text}\n`);
}

type Child = ChildProcess | ChildProcessByStdio<Writable, Readable, null>;

/** Resolves when the process has ended and all its output has arrived, as far as nothing else holds its stdout. */
async function statusOf(child: Child): Promise<number> {
    const closed = once(child, 'close');
    const [code, signal] = await once(child, 'exit');
    await Promise.race([closed, pause(FAREWELL, undefined, { ref: false })]);
    child.stdout?.destroy();
    return code ?? 128 + constants.signals[signal as NodeJS.Signals];
}

/** The server's process, and its successors. */
class Process {
    #child: Child | undefined;
    #ended: Promise<number> = Promise.resolve(0);

    constructor(private readonly args: readonly string[], private readonly patienceMs: number, private readonly relay: Relay | undefined) {}

    start(): void {
        const pipe = this.relay ? 'pipe' : 'ignore';
        const out = this.relay ? 'pipe' : 'inherit';
        const child: Child = spawn(process.execPath, [...process.execArgv, ...this.args], { stdio: [pipe, out, 'inherit'] });
        this.#child = child;
        this.#ended = statusOf(child).then(status => this.#over(child, status));
        this.relay?.begin(child as Piped);
    }

    #over(child: Child, status: number): number {
        this.relay?.ended(child as Piped);
        if (child === this.#child) say(`the server ended with status ${status}; it starts again when a file changes`);
        return status;
    }

    /** Ends the process gracefully, by force after the grace period; returns its status, which is 0 if the process ended before it served. */
    async stop(): Promise<number> {
        const child = this.#child;
        this.#child = undefined;
        this.relay?.hold();
        this.relay?.leave();
        if (child?.stdin) child.stdin.end();
        else child?.kill();
        const timer = setTimeout(() => child?.kill('SIGKILL'), this.patienceMs);
        const status = await this.#ended;
        clearTimeout(timer);
        this.relay?.replaced();
        return status === 128 + constants.signals.SIGTERM ? 0 : status;
    }
}
