// What `telemetry: true` adds to a call, beside a handler that makes the same span and measurement with OpenTelemetry's SDK by hand:
// `node benches/spans.mjs [--quick] [--json FILE]`
//
// Each contender is a process of its own, with a client and a server. Figures are the CPU time of all its threads per call, in µs;
// contenders take turns, and what is told is the median of the rounds, and of the ratios of each round.
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { context, metrics, ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { Client, Server } from 'mcpbolt';
import { median, note, quick } from './figures.mjs';

const [rounds, calls] = quick ? [3, 2_000] : [21, 20_000];
const IN_FLIGHT = 32;
const COMMON = {
    'mcp.method.name': 'tools/call',
    'gen_ai.tool.name': 'echo',
    'gen_ai.operation.name': 'execute_tool',
    'mcp.protocol.version': '2026-07-28',
    'network.transport': 'pipe'
};
const [NONE, OURS, THEIRS] = ['no span', 'telemetry', 'by hand'];

/** Measures a round for each message of the parent. */
async function compete(name) {
    let exported = 0;
    const nowhere = {
        export(spans, done) {
            exported += spans.length;
            done({ code: 0 });
        },
        shutdown: async () => {}
    };
    new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(nowhere)] }).register();
    metrics.setGlobalMeterProvider(new MeterProvider());
    const tracer = trace.getTracer('by hand');
    const duration = metrics.getMeter('by hand').createHistogram('mcp.server.operation.duration', { unit: 's' });
    let id = 0;

    const plain = async ({ text }) => text;
    /** With the attributes and the measurement that the conventions ask for. */
    async function byHand(args) {
        const began = performance.now();
        const attributes = { ...COMMON, 'jsonrpc.request.id': String(++id) };
        const span = tracer.startSpan('tools/call echo', { kind: SpanKind.SERVER, attributes }, ROOT_CONTEXT);
        const within = trace.setSpan(ROOT_CONTEXT, span);
        try {
            return await context.with(within, plain, undefined, args);
        } finally {
            span.end();
            duration.record((performance.now() - began) / 1000, COMMON, within);
        }
    }

    const server = new Server('spans', '1', { telemetry: name === OURS }).tool('echo', {}, name === THEIRS ? byHand : plain);
    const client = await Client.connect(server, { revision: '2026-07-28' });
    async function line() {
        for (let i = 0; i < calls / IN_FLIGHT; i++) assert.equal((await client.callTool('echo', { text: 'a' })).content[0].text, 'a');
    }
    process.on('message', async () => {
        const began = process.cpuUsage();
        await Promise.all(Array.from({ length: IN_FLIGHT }, line));
        const { user, system } = process.cpuUsage(began);
        // Batches are exported later, and a full queue drops spans; but nobody is measured without any.
        assert.equal(exported > 0, name !== NONE);
        process.send((user + system) / calls);
    });
}

async function main() {
    const contenders = [NONE, OURS, THEIRS].map(name => ({ name, took: [], process: fork(fileURLToPath(import.meta.url), [...process.argv.slice(2), name]) }));
    // One that fails says why itself.
    for (const { process: one } of contenders) one.once('exit', code => code && process.exit(code));
    for (let round = -1; round < rounds; round++) {
        for (const { took, process: one } of contenders) {
            one.send('round');
            const [perCall] = await once(one, 'message');
            // The first round warms up.
            if (round >= 0) took.push(perCall);
        }
    }
    for (const { process: one } of contenders) one.kill();
    const [base, ours, theirs] = contenders.map(({ took }) => took);
    console.log(`node ${process.version}; µs of CPU per call, median of ${rounds} rounds of ${calls}`);
    for (const { name, took } of contenders) console.log(`${name.padEnd(12)}${median(took).toFixed(2).padStart(8)}`);
    const ratios = base.map((none, at) => (ours[at] - none) / (theirs[at] - none)).sort((a, b) => a - b);
    // The ranks between which the median is, with a probability of 95 %.
    const rank = Math.max(0, Math.floor(rounds / 2 - 0.98 * Math.sqrt(rounds)) - 1);
    const ratio = median(ratios);
    note({ bench: 'node-spans', telemetryUs: median(ours) - median(base), byHandUs: median(theirs) - median(base), ratio });
    console.log(`what telemetry adds, beside a span by hand: ${ratio.toFixed(2)}x (95 %: ${ratios[rank].toFixed(2)} to ${ratios.at(-1 - rank).toFixed(2)})`);
}

await (process.send ? compete(process.argv.at(-1)) : main());
