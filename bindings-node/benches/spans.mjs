// What `telemetry: true` adds to a call, beside a handler that makes the same span and measurement with OpenTelemetry's SDK by hand:
// `node benches/spans.mjs [--quick] [--json FILE]`
//
// Clients and servers are in this process. Figures are the CPU time of all its threads per call, in µs; contenders take turns, and what is
// told is the median of the rounds, and of the ratios of each round.
import assert from 'node:assert/strict';
import { context, metrics, ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { Client, Server } from 'mcpbolt';
import { median, note, quick } from './figures.mjs';

const [rounds, calls] = quick ? [3, 2_000] : [21, 20_000];
const IN_FLIGHT = 32;

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

const COMMON = {
    'mcp.method.name': 'tools/call',
    'gen_ai.tool.name': 'echo',
    'gen_ai.operation.name': 'execute_tool',
    'mcp.protocol.version': '2026-07-28',
    'network.transport': 'pipe'
};
let id = 0;

/** A handler in a span by hand, with the attributes and the measurement that the conventions ask for. */
function byHand(handler) {
    return async args => {
        const began = performance.now();
        const span = tracer.startSpan('tools/call echo', { kind: SpanKind.SERVER, attributes: { ...COMMON, 'jsonrpc.request.id': String(++id) } }, ROOT_CONTEXT);
        const within = trace.setSpan(ROOT_CONTEXT, span);
        try {
            return await context.with(within, handler, undefined, args);
        } finally {
            span.end();
            duration.record((performance.now() - began) / 1000, COMMON, within);
        }
    };
}

const echo = async ({ text }) => text;
const connect = (handler, telemetry) => Client.connect(new Server('spans', '1', { telemetry }).tool('echo', {}, handler), { revision: '2026-07-28' });
const CONTENDERS = { 'no span': await connect(echo, false), telemetry: await connect(echo, true), 'by hand': await connect(byHand(echo), false) };

async function perCall(client) {
    const began = process.cpuUsage();
    const line = async () => {
        for (let i = 0; i < calls / IN_FLIGHT; i++) assert.equal((await client.callTool('echo', { text: 'a' })).content[0].text, 'a');
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, line));
    const { user, system } = process.cpuUsage(began);
    return (user + system) / calls;
}

const all = Object.fromEntries(Object.keys(CONTENDERS).map(name => [name, []]));
for (let round = -1; round < rounds; round++) {
    const before = exported;
    for (const [name, client] of Object.entries(CONTENDERS)) {
        const took = await perCall(client);
        // The first round warms up.
        if (round >= 0) all[name].push(took);
    }
    // Batches are exported later, and a full queue drops spans; but nobody is measured without any.
    assert.ok(exported > before || round < 0);
}
for (const client of Object.values(CONTENDERS)) await client.close();

const [base, ours, theirs] = Object.values(all);
console.log(`node ${process.version}; µs of CPU per call, median of ${rounds} rounds of ${calls}`);
for (const [name, took] of Object.entries(all)) console.log(`${name.padEnd(12)}${median(took).toFixed(2).padStart(8)}`);
const ratios = base.map((none, at) => (ours[at] - none) / (theirs[at] - none)).sort((a, b) => a - b);
const [low, high] = [0.25, 0.75].map(part => ratios[Math.floor(part * (rounds - 1))]);
const ratio = median(ratios);
note({ bench: 'node-spans', telemetryUs: median(ours) - median(base), byHandUs: median(theirs) - median(base), ratio });
console.log(`what telemetry adds, beside a span by hand: ${ratio.toFixed(2)}x (half of the rounds: ${low.toFixed(2)} to ${high.toFixed(2)})`);
process.exit();
