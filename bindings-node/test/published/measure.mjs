// Measures published servers by themselves and under `mcpbolt exec`, and prints a table: `node measure.mjs [NAME...]`. Each
// server takes turns; the figures are medians of processor time.
import { readdirSync, readFileSync } from 'node:fs';
import { begun } from './begun.mjs';
import { nameOf, SERVERS } from './servers.mjs';
import { argumentsOf } from './talk.mjs';

const [ROUNDS, REQUESTS, SECONDS] = [3, 200, 1.5];
const REVISION = '2025-06-18';

/** The processor time of a server until now, in ms. */
function cpu({ child: { pid } }) {
    const task = name => Number(readFileSync(`/proc/${pid}/task/${name}/schedstat`, 'utf8').split(' ')[0]);
    return readdirSync(`/proc/${pid}/task`).reduce((sum, name) => sum + task(name), 0) / 1e6;
}

/** Microseconds of one request, of up to `REQUESTS` within `SECONDS`. */
async function each(talk, request) {
    const [until, begin] = [Date.now() + SECONDS * 1000, cpu(talk)];
    let count = 0;
    while (count < REQUESTS && (count === 0 || Date.now() < until)) {
        await request();
        count++;
    }
    return ((cpu(talk) - begin) / count) * 1e3;
}

/** A call of the first tool that answers without an error. */
async function called(talk, server, tools) {
    for (const { name, inputSchema } of server.isListedOnly ? [] : tools) {
        if (server.without?.[name]) continue;
        const params = { name, arguments: argumentsOf(inputSchema, name, server.known ?? {}) };
        const { result } = await talk.request('tools/call', params);
        if (result && !result.isError) return params;
    }
    return undefined;
}

/** Milliseconds to the first list, microseconds of a later one and of a call, the tool, and how the server runs. */
async function measured(server, how) {
    const talk = begun(server, how, REVISION);
    try {
        await talk.open();
        const { tools } = (await talk.request('tools/list')).result;
        const figures = [cpu(talk), await each(talk, () => talk.request('tools/list'))];
        const call = await called(talk, server, tools);
        if (call) figures.push(await each(talk, () => talk.request('tools/call', call)));
        await talk.end();
        return { figures, tool: call?.name, said: /^mcpbolt: .*/m.exec(talk.stderr)?.[0] ?? '' };
    } finally {
        talk.child.kill('SIGKILL');
    }
}

const median = values => values.sort((a, b) => a - b)[values.length >> 1];

async function row(server) {
    const taken = { own: [], exec: [] };
    let last;
    for (let round = 0; round < ROUNDS; round++)
        for (const [how, rounds] of Object.entries(taken)) {
            last = await measured(server, how);
            rounds.push(last.figures);
        }
    const medians = rounds => rounds[0].map((_, column) => median(rounds.map(figures => figures[column])));
    const [own, exec] = [medians(taken.own), medians(taken.exec)];
    const cells = own.flatMap((figure, column) => {
        const unit = column === 0 ? 'ms' : 'µs';
        const times = column === 0 ? '' : ` (${(figure / exec[column]).toFixed(1)} ×)`;
        return [`${figure.toFixed(0)} ${unit}`, `${exec[column].toFixed(0)} ${unit}${times}`];
    });
    const by = last.said.includes('the engine serves') ? 'the engine' : last.said.includes('carries') ? 'its sessions, carried' : 'itself';
    return [nameOf(server), ...cells, ...(last.tool ? [last.tool] : ['–', '–', 'none']), by];
}

const names = process.argv.slice(2);
const print = cells => console.log(`| ${cells.join(' | ')} |`);
print(['server', 'first list: own', 'exec', 'a `tools/list`: own', 'exec', 'a call: own', 'exec', 'of', 'answered by']);
console.log('|---|--:|--:|--:|--:|--:|--:|---|---|');
for (const server of SERVERS)
    if (names.length === 0 || names.includes(nameOf(server)))
        try {
            print(await row(server));
        } catch (error) {
            process.exitCode = 1;
            print([nameOf(server), `not measured: ${error.message}`]);
        }
