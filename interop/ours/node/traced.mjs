// Our client or server in Node, traced by OpenTelemetry's SDK: `traced.mjs ADDRESS TOOL…` calls the tools within one span,
// `traced.mjs` serves on stdin and stdout.
//
// Each span that has ended becomes a line of JSON in the file that the variable SPANS names.
import { appendFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Client, Server } from '../../../bindings-node/index.mjs';

// Those that the package is tested with.
const require = createRequire(new URL('../../../bindings-node/package.json', import.meta.url));
const { SpanKind, trace } = require('@opentelemetry/api');
const { NodeTracerProvider, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-node');

const lines = {
    export(spans, done) {
        for (const span of spans) {
            const { traceId, spanId } = span.spanContext();
            const told = { name: span.name, kind: SpanKind[span.kind], trace: traceId, id: spanId, parent: span.parentSpanContext?.spanId ?? '' };
            appendFileSync(process.env.SPANS, `${JSON.stringify(told)}\n`);
        }
        done({ code: 0 });
    },
    shutdown: async () => {}
};
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(lines)] }).register();

const [address, ...tools] = process.argv.slice(2);
if (address === undefined) await new Server('traced', '1', { telemetry: true }).tool('test_simple_text', {}, () => 'text').run();
else {
    const client = await Client.connect(address, { telemetry: true });
    await trace.getTracer('traced').startActiveSpan('work', async span => {
        for (const tool of tools) await client.callTool(tool);
        span.end();
    });
    await client.close();
}
