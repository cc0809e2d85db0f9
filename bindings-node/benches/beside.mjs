// Calls of a small tool beside what JavaScript costs by itself and beside the official SDK, on stdio and on HTTP, 32 in
// flight: `node benches/beside.mjs [--quick] [--json FILE]`. Every answer is checked.
//
// Figures are the server's CPU in microseconds for one call, of all its threads and of JavaScript's, the median of
// rounds in which all take turns.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { median, Pipe, cpuOf } from './pipe.mjs';

const quick = process.argv.includes('--quick');
const [CALLS, ROUNDS] = quick ? [2000, 3] : [20_000, 7];
const IN_FLIGHT = 32;
const here = fileURLToPath(new URL('.', import.meta.url));
const ours = carrier => Object.fromEntries(['mcpbolt', 'v1', 'accelerated'].map(kind => [kind, ['server.mjs', kind, carrier]]));
const CONTENDERS = { stdio: { bare: ['floors/stdio.mjs'], ...ours('stdio') }, http: { bare: ['floors/http.mjs'], ...ours('http') } };
const CALL = text => ({ method: 'tools/call', params: { name: 'echo', arguments: { text } } });

class OnStdio {
    async open(args) {
        this.pipe = await new Pipe([process.execPath, ...args], here).open();
        return this;
    }

    ask(id, { method, params }) {
        return this.pipe.request(id, method, params);
    }
}

class OnHttp {
    #agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT });
    #headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

    async open(args) {
        this.pipe = new Pipe([process.execPath, ...args], here, 'pipe');
        this.url = await new Promise(resolve => this.pipe.child.stderr.once('data', text => resolve(String(text).trim())));
        const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
        await this.ask('open', { method: 'initialize', params });
        await this.ask(undefined, { method: 'notifications/initialized' });
        return this;
    }

    ask(id, message) {
        const body = JSON.stringify({ jsonrpc: '2.0', id, ...message });
        return new Promise((resolve, reject) => {
            const headers = { ...this.#headers, 'content-length': Buffer.byteLength(body) };
            const sent = request(this.url, { method: 'POST', agent: this.#agent, headers }, response => {
                const session = response.headers['mcp-session-id'];
                if (session) Object.assign(this.#headers, { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' });
                const pieces = [];
                response.on('data', piece => pieces.push(piece)).on('end', () => resolve(Buffer.concat(pieces)));
            });
            sent.on('error', reject).end(body);
        });
    }
}

async function calls(server, count) {
    let next = 0;
    const one = async () => {
        while (next < count) {
            const id = ++next;
            const text = `text ${id}`;
            const { result } = JSON.parse(await server.ask(id, CALL(text)));
            assert.equal(result.content[0].text, text);
        }
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, one));
}

const records = [];
console.log(`node ${process.version}; CPU microseconds for a call, ${IN_FLIGHT} in flight, median of ${ROUNDS} rounds of ${CALLS}`);
for (const [carrier, contenders] of Object.entries(CONTENDERS)) {
    const servers = {};
    for (const [name, args] of Object.entries(contenders)) {
        servers[name] = await new { stdio: OnStdio, http: OnHttp }[carrier]().open(args);
        await calls(servers[name], CALLS);
    }
    const took = Object.fromEntries(Object.keys(servers).map(name => [name, { all: [], js: [] }]));
    for (let round = 0; round < ROUNDS; round++)
        for (const [name, server] of Object.entries(servers)) {
            const before = cpuOf(server.pipe.child.pid);
            await calls(server, CALLS);
            const after = cpuOf(server.pipe.child.pid);
            for (const what of ['all', 'js']) took[name][what].push(((after[what] - before[what]) * 1000) / CALLS);
        }
    const [all, js] = ['all', 'js'].map(what => Object.fromEntries(Object.entries(took).map(([name, one]) => [name, median(one[what])])));
    for (const name of Object.keys(servers)) {
        const beside = ['bare', 'v1'].map(base => `${(all[base] / all[name]).toFixed(2)}x (JS ${(js[base] / js[name]).toFixed(2)}x) ${base}`);
        console.log(`${carrier.padEnd(6)}${name.padEnd(12)}${all[name].toFixed(2).padStart(9)}  JS thread ${js[name].toFixed(2).padStart(8)}  better than: ${beside.join(', ')}`);
        records.push({ bench: 'node-beside', carrier, name, us: all[name], jsUs: js[name] });
    }
    for (const server of Object.values(servers)) server.pipe.child.kill();
}
if (process.argv.includes('--json')) writeFileSync(process.argv[process.argv.indexOf('--json') + 1], records.map(record => JSON.stringify(record)).join('\n') + '\n');
process.exit();
