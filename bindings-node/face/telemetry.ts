/**
 * Spans and durations of requests and sessions in the program's own OpenTelemetry, by its conventions for MCP.
 *
 * The engine notes what happens, on its own threads, and says what spans and metrics are called and contain. Spans of handlers and of
 * requests that this program sends begin here, where they are current; everything else is recorded when the engine says that it has ended.
 */
import type * as api from '@opentelemetry/api';
import { McpError } from './errors';
import { native, type NativeLink, type NativeTelemetry } from './native';

/** A `traceparent`, and a `tracestate` or `null`. */
type Place = readonly [parent: string, state: string | null];
type Time = [seconds: number, nanoseconds: number];

/** The description of a span: see `HostTelemetry` of the engine. */
interface Begun {
    key: number;
    name: string;
    isSent: boolean;
    time: Time;
    attributes: api.Attributes;
    parent?: Place;
    link?: Place;
}

/** A request or a session that has ended. Sessions have no span. */
interface Ended {
    time: Time;
    seconds: number;
    histogram: string;
    attributes: api.Attributes;
    key?: number;
    isError?: boolean;
    ended?: api.Attributes;
    begun?: Begun;
    renamed?: string;
    unsent?: number;
}

/** A request that a front passes on: its span, and within it the one of the request to the server. */
interface Passing {
    passes: readonly [own: Begun, sent: Begun];
}

type Instruments = Readonly<Record<string, { unit: string; description: string; boundaries: number[] }>>;

const SCOPE = 'mcpbolt';

let current: Telemetry | undefined;

/**
 * @internal The one object for all servers, clients and fronts of this thread, whose tracer and meter are global as well. Throws
 * `ERR_MCP_MISUSE` if OpenTelemetry's API is not installed.
 */
export function telemetry(): Telemetry {
    return (current ??= new Telemetry(load()));
}

function load(): typeof api {
    try {
        return require('@opentelemetry/api');
    } catch (cause) {
        throw new McpError('ERR_MCP_MISUSE', "telemetry: it needs OpenTelemetry's API; install it: npm install @opentelemetry/api", { cause });
    }
}

/** @internal The same object, if anything on this thread has telemetry. */
export const observer = (): Telemetry | undefined => current;

/** @internal The engine's observer, and what it tells OpenTelemetry. */
export class Telemetry {
    readonly native: NativeTelemetry = new native.Telemetry(() => this.take(), (wire, number) => this.#sent(wire, number));
    /** Whether the engine waits for the span of a request to begin. */
    #isBeginning = false;
    readonly #tracer: api.Tracer;
    #histograms: Readonly<Record<string, api.Histogram>> | undefined;
    /** Spans that have begun, by key. */
    readonly #open = new Map<number, api.Span>();
    #contextOf: (number: number) => unknown = nowhere;

    constructor(readonly api: typeof import('@opentelemetry/api')) {
        this.#tracer = api.trace.getTracer(SCOPE, native.Telemetry.version());
        // Before the listeners that shut an SDK down.
        const take = () => this.take();
        process.prependListener('beforeExit', take).prependListener('exit', take);
    }

    /** Runs a call of a link within its span. */
    within(link: NativeLink, call: number, run: () => void): void {
        const wire = link.span(call);
        if (wire === null) return run();
        const about = JSON.parse(wire) as Begun;
        const { trace, context, ROOT_CONTEXT } = this.api;
        const span = this.#start(about, ROOT_CONTEXT);
        this.#open.set(about.key, span);
        context.with(trace.setSpan(ROOT_CONTEXT, span), run);
    }

    /** Throws while the engine waits for a span to begin: its links, which it has borrowed, must not be used then. */
    checkFree(): void {
        if (this.#isBeginning) throw new McpError('ERR_MCP_MISUSE', 'a sampler or a span processor of OpenTelemetry used mcpbolt when a span began; do so later');
    }

    /** Runs `drain`, whose requests belong to the contexts that `of` finds by number, and records what has ended. */
    draining(drain: () => string, of: (number: number) => unknown): string {
        this.#contextOf = of;
        try {
            const text = drain();
            // Before the answers are passed on, so that the spans of requests have ended by then.
            this.take();
            return text;
        } finally {
            // It refers to a link, which may be collected.
            this.#contextOf = nowhere;
        }
    }

    /** Records what has ended. Does not throw: the answers that were drained before would be lost. */
    take(): void {
        const wire = this.native.take();
        if (wire === null) return;
        for (const entry of JSON.parse(wire) as (Ended | Passing)[])
            if ('passes' in entry) this.#pass(entry);
            else this.#heeding(entry.histogram, () => this.#record(entry), undefined);
    }

    /** Begins the span of a request that is about to be sent; returns the place that the request names. */
    #sent(wire: string, number: number): string | null {
        this.#isBeginning = true;
        try {
            const about = JSON.parse(wire) as Begun;
            const context = number === 0 ? this.api.context.active() : (this.#contextOf(number) as api.Context | undefined);
            const span = this.#start(about, context ?? this.api.ROOT_CONTEXT);
            const place = this.#placeOf(span);
            // Without an SDK there are no spans: the engine does not wait for this one.
            if (place !== undefined) this.#open.set(about.key, span);
            return place ?? null;
        } finally {
            this.#isBeginning = false;
        }
    }

    /** Begins the spans of a request that a front passes on, for which the request waits. */
    #pass({ passes: [about, further] }: Passing): void {
        const { trace, ROOT_CONTEXT } = this.api;
        const own = this.#start(about, ROOT_CONTEXT);
        this.#open.set(about.key, own);
        const sent = this.#start(further, trace.setSpan(ROOT_CONTEXT, own));
        if (this.native.passed(about.key, this.#placeOf(own), this.#placeOf(sent))) this.#open.set(further.key, sent);
        else this.#heeding(further.name, () => sent.end(), undefined);
    }

    /** The place of a span for the engine; `undefined` if there is no span. */
    #placeOf(span: api.Span): string | undefined {
        return this.#heeding('a span', () => this.#place(span), undefined);
    }

    #place(span: api.Span): string | undefined {
        const context = span.spanContext();
        if (!this.api.isSpanContextValid(context)) return undefined;
        const { traceId, spanId, traceFlags, traceState } = context;
        const parent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
        const state = traceState?.serialize();
        return state ? `${parent} ${state}` : parent;
    }

    #start(about: Begun, within: api.Context): api.Span {
        return this.#heeding(about.name, () => this.#started(about, within), this.api.trace.wrapSpanContext(this.api.INVALID_SPAN_CONTEXT));
    }

    #started({ name, isSent, time, attributes, parent, link }: Begun, within: api.Context): api.Span {
        const { trace, isSpanContextValid, SpanKind } = this.api;
        const own = trace.getSpanContext(within);
        // A request that is sent belongs to what is current here; one that arrived, to what its sender says.
        const isPlaced = isSent && own !== undefined && isSpanContextValid(own);
        const around = parent && !isPlaced ? trace.setSpanContext(within, this.#remote(parent)) : within;
        const links = link && [{ context: this.#remote(link) }];
        return this.#tracer.startSpan(name, { kind: isSent ? SpanKind.CLIENT : SpanKind.SERVER, attributes, startTime: time, ...(links && { links }) }, around);
    }

    #record({ time, seconds, histogram, attributes, key, isError, ended, begun, renamed, unsent }: Ended): void {
        const { trace, ROOT_CONTEXT, SpanStatusCode } = this.api;
        const span = begun ? this.#start(begun, ROOT_CONTEXT) : key === undefined ? undefined : this.#open.get(key);
        if (key !== undefined) this.#open.delete(key);
        if (unsent !== undefined) this.#endUnsent(unsent, time);
        if (span) {
            if (renamed !== undefined) span.updateName(renamed);
            if (ended) span.setAttributes(ended);
            if (isError) span.setStatus({ code: SpanStatusCode.ERROR });
            span.end(time);
        }
        this.#histograms ??= this.#created();
        this.#histograms[histogram]!.record(seconds, attributes, span && trace.setSpan(ROOT_CONTEXT, span));
    }

    /** Ends the span of a request that a front did not pass on. */
    #endUnsent(key: number, time: Time): void {
        const span = this.#open.get(key);
        this.#open.delete(key);
        this.#heeding('a request that is not passed on', () => span?.end(time), undefined);
    }

    /** The histograms; the program has set its meter up by the first measurement. */
    #created(): Readonly<Record<string, api.Histogram>> {
        const meter = this.api.metrics.getMeter(SCOPE, native.Telemetry.version());
        const all = Object.entries(JSON.parse(native.Telemetry.instruments()) as Instruments);
        return Object.fromEntries(
            all.map(([name, { unit, description, boundaries }]) => [
                name,
                meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: boundaries } })
            ])
        );
    }

    /** A place in a trace of another process, whose `traceparent` is valid. */
    #remote([parent, state]: Place): api.SpanContext {
        const [, traceId = '', spanId = '', flags = ''] = parent.split('-');
        const traceState = state === null ? {} : { traceState: this.api.createTraceState(state) };
        return { traceId, spanId, traceFlags: parseInt(flags, 16), isRemote: true, ...traceState };
    }

    /** No call fails by the program's sampler, processor or exporter. */
    #heeding<Made>(what: string, make: () => Made, otherwise: Made): Made {
        try {
            return make();
        } catch (error) {
            this.#complain(what, error);
            return otherwise;
        }
    }

    #complain(what: string, error: unknown): void {
        try {
            this.api.diag.error(`mcpbolt: telemetry of ${what} failed`, error);
        } catch {
            // The program's logger failed as well.
        }
    }
}

function nowhere(): undefined {}
