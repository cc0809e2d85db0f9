// The spans and metrics that OpenTelemetry's SDK exports in this process, and how they are held against the conventions.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { metrics, SpanKind, trace } from '@opentelemetry/api';
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { until } from './until.mjs';

export const CONVENTIONS = JSON.parse(readFileSync(new URL('../../corpus/telemetry.json', import.meta.url)));
const NEVER_MS = 2 ** 31 - 1;

const exporter = new InMemorySpanExporter();
const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter: metricExporter, exportIntervalMillis: NEVER_MS });

/** Sets the SDK up, with `processors` beside the exporter; returns the program's tracer. */
export function setUp(...processors) {
    new NodeTracerProvider({ spanProcessors: [...processors, new SimpleSpanProcessor(exporter)] }).register();
    metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
    return trace.getTracer('the program');
}

/** The spans of that name that have ended. */
export const ended = name => exporter.getFinishedSpans().filter(span => span.name === name);

/** The same, once there are that many. */
export async function spans(name, count) {
    const found = () => ended(name);
    await until(() => found().length >= count);
    assert.equal(found().length, count, name);
    return found();
}

/** The one of that kind: `CLIENT`, `SERVER` or `INTERNAL`. */
export async function span(name, kind, count = 2) {
    const found = (await spans(name, count)).filter(span => SpanKind[span.kind] === kind);
    assert.equal(found.length, 1, `${kind} ${name}`);
    return found[0];
}

/** Forgets the spans so far. */
export const forget = () => exporter.reset();

/** The points of a histogram. */
export async function measured(histogram) {
    metricExporter.reset();
    await reader.forceFlush();
    const all = metricExporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
    const own = all.filter(({ descriptor }) => descriptor.name === histogram);
    for (const { descriptor } of own) assert.equal(descriptor.unit, CONVENTIONS.histograms[histogram]);
    return own.flatMap(({ dataPoints }) => dataPoints);
}

/** How many measurements are in these points. */
export const countOf = points => points.reduce((sum, { value }) => sum + value.count, 0);

/** The points of a histogram, once that many measurements are in them. */
export async function points(histogram, count) {
    let found;
    await until(async () => countOf((found = await measured(histogram))) >= count);
    assert.equal(countOf(found), count, histogram);
    return found;
}

const isWithin = (some, all) => some.every(one => all.includes(one));

/** Checks the names of a span's attributes, and the values of `wanted`. */
export function checkSpan({ name, attributes, status, startTime, endTime }, wanted) {
    const always = Object.entries(CONVENTIONS.spans).filter(([, when]) => when === 'always');
    assert.ok(isWithin(Object.keys(attributes), Object.keys(CONVENTIONS.spans)), `${name}: ${Object.keys(attributes)}`);
    assert.ok(isWithin(always.map(([key]) => key), Object.keys(attributes)), `${name}: ${Object.keys(attributes)}`);
    for (const [key, value] of Object.entries(wanted)) assert.equal(attributes[key], value, `${name}: ${key}`);
    assert.equal(status.code === 2, wanted['error.type'] !== undefined, name);
    assert.ok(startTime[0] < endTime[0] || (startTime[0] === endTime[0] && startTime[1] <= endTime[1]), name);
}

/** Checks the names of the attributes of points, and the buckets. */
export function checkPoints(points) {
    for (const { attributes, value } of points) {
        assert.ok(isWithin(Object.keys(attributes), CONVENTIONS['attributes of histograms']), `${Object.keys(attributes)}`);
        assert.ok(isWithin(CONVENTIONS.boundaries, value.buckets.boundaries));
    }
}
