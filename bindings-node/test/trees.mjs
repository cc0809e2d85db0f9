// Programs that serve with workers.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { afterEach } from 'node:test';
import { stateless } from './http.mjs';
import { until, within } from './until.mjs';
import { folder, program } from './wire.mjs';

const children = new Set();
afterEach(() => {
    for (const child of children) child.kill('SIGKILL');
    children.clear();
});

export const SERVER = `
    import { setTimeout as pause } from 'node:timers/promises';
    import { Server } from 'mcpbolt';
    const server = new Server('many', '1.0.0')
        .tool('process', {}, () => String(process.pid))
        .tool('slow', {}, async () => (await pause(100), String(process.pid)))
        .tool('told', {}, async () => (console.error('begun'), await pause(100), String(process.pid)))
        .tool('stuck', {}, () => { for (console.error('stuck'); ; ); });
    const onListening = address => console.error(address);
`;

/** Has that server run with two workers. */
export const at = (options = '') => `console.log(JSON.stringify(await server.run('http://127.0.0.1:0/mcp', { workers: 2, onListening, ${options} })));`;

/** A program that serves with two workers. */
export class Tree {
    static async start(args = program(SERVER + at())) {
        const tree = new Tree();
        tree.process = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
        children.add(tree.process);
        tree.ended = once(tree.process, 'close').then(([code, signal]) => ({ code, signal }));
        tree.reasons = [];
        createInterface({ input: tree.process.stdout }).on('line', line => tree.reasons.push(JSON.parse(line).reason));
        tree.said = createInterface({ input: tree.process.stderr })[Symbol.asyncIterator]();
        tree.address = new URL(/http:.*/.exec(await tree.line())[0]);
        return tree;
    }

    async line() {
        return (await within('a line', this.said.next())).value;
    }

    get workers() {
        return execFileSync('ps', ['-o', 'pid=,stat=', '--ppid', String(this.process.pid)], { encoding: 'utf8' })
            .split('\n')
            .map(row => row.trim().split(/\s+/))
            .filter(([pid, state]) => pid && !state.startsWith('Z'))
            .map(([pid]) => Number(pid));
    }

    /** Calls a tool on a connection of the agent's. Rejects if the connection breaks off before the answer is there. */
    async call(name, agent) {
        const response = await through(agent)(this.address, stateless('tools/call', { name, arguments: {} }));
        return (await response.json()).result.content[0].text;
    }

    /** Has clients call without a pause while `act` runs. Returns how many calls were lost. */
    async lost(act) {
        let [isOver, answered, lost] = [false, 0, 0];
        const clients = Array.from({ length: 4 }, async () => {
            const agent = connection();
            while (!isOver) await this.call('slow', agent).then(() => answered++, () => lost++);
            agent.destroy();
        });
        await until(() => answered > 10);
        await act();
        const before = answered;
        await until(() => answered > before + 10);
        isOver = true;
        await Promise.all(clients);
        return lost;
    }

    async end() {
        this.process.kill('SIGTERM');
        assert.deepEqual(await within('the end', this.ended), { code: 0, signal: null });
    }
}

/** An agent that keeps one connection. */
export const connection = () => new Agent({ keepAlive: true, maxSockets: 1 });

/** A `fetch` on connections of an agent, by which a test chooses the worker that a request comes to. */
export const through = agent => (url, { method, headers, body, signal }) =>
    new Promise((resolve, reject) => {
        const asked = request(url, { method, headers: Object.fromEntries(new Headers(headers)), agent, signal }, response => {
            const hasBody = ![202, 204].includes(response.statusCode);
            if (!hasBody) response.resume();
            resolve(new Response(hasBody ? Readable.toWeb(response) : null, { status: response.statusCode, headers: response.headers }));
        });
        asked.on('error', reject);
        asked.end(body);
    });
