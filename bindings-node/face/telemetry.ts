/**
 * Spans and durations of requests and sessions in the program's own OpenTelemetry, by its conventions for MCP.
 *
 * The engine notes what happens, on its own threads, and says what spans and metrics are called and contain. Spans of handlers and of
 * requests that this program sends begin here, where they are current; everything else is recorded when the engine says that it has ended.
 */
import type * as api from '@opentelemetry/api';
import { McpError } from './errors';
import { native, type NativeTelemetry } from './native';

/** A `traceparent`, and a `tracestate` or `null`. */
type Place = readonly [parent: string, state: string | null];
type Time = [seconds: number, nanoseconds: number];

/** @internal The description of a span: see `HostTelemetry` of the engine. It has a series, or a name and a direction of its own. */
export interface Begun {
    key: number;
    series?: number;
    name?: string;
    isSent?: boolean;
    time: Time;
    attributes: api.Attributes;
    parent?: Place;
    link?: Place;
}

/** Requests with the same span name and attributes: those attributes, and the histogram of their durations. */
interface Series {
    name: string;
    isSent: boolean;
    attributes: api.Attributes;
    histogram: string;
}

/** A request that has ended. */
interface Ended {
    key: number;
    series: number;
    time: Time;
    seconds: number;
    isError?: true;
    ended?: api.Attributes;
    failed?: api.Attributes;
    begun?: Begun;
    renamed?: string;
    unsent?: number;
}

/** A session that has ended. It has no span. */
interface EndedSession {
    time: Time;
    seconds: number;
    histogram: string;
    attributes: api.Attributes;
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
    /** Calls that ended after they were drained, before they began here. */
    readonly #early = new Map<number, Ended>();
    readonly #series: Series[] = [];
    #contextOf: (number: number) => unknown = nowhere;

    constructor(readonly api: typeof import('@opentelemetry/api')) {
        this.#tracer = api.trace.getTracer(SCOPE, native.Telemetry.version());
        // Before the listeners that shut an SDK down.
        const take = () => this.take();
        process.prependListener('beforeExit', take).prependListener('exit', take);
    }

    /** Runs a call within its span. */
    within(about: Begun, run: () => void): void {
        const { trace, context, ROOT_CONTEXT } = this.api;
        const span = this.#start(about, ROOT_CONTEXT);
        const ended = this.#early.get(about.key);
        if (ended === undefined) this.#open.set(about.key, span);
        else {
            this.#early.delete(about.key);
            this.#end(ended, span);
        }
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
            this.#settle();
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
        for (const entry of JSON.parse(wire) as (Ended | EndedSession | Passing)[])
            try {
                if ('key' in entry) this.#record(entry);
                else if ('passes' in entry) this.#pass(entry);
                else this.#measure(entry.histogram, entry.seconds, entry.attributes);
            } catch (error) {
                this.#complain('what has ended', error);
            }
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
        else sent.end();
    }

    /** The place of a span for the engine; `undefined` if there is no span. */
    #placeOf(span: api.Span): string | undefined {
        try {
            return this.#place(span);
        } catch (error) {
            this.#complain('a span', error);
            return undefined;
        }
    }

    #place(span: api.Span): string | undefined {
        const context = span.spanContext();
        if (!this.api.isSpanContextValid(context)) return undefined;
        const { traceId, spanId, traceFlags, traceState } = context;
        const parent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
        const state = traceState?.serialize();
        return state ? `${parent} ${state}` : parent;
    }

    /** Begins a span. No call fails by the program's sampler or processor. */
    #start(about: Begun, within: api.Context): api.Span {
        try {
            return this.#started(about, within);
        } catch (error) {
            this.#complain('a request', error);
            return this.api.trace.wrapSpanContext(this.api.INVALID_SPAN_CONTEXT);
        }
    }

    #started(about: Begun, within: api.Context): api.Span {
        const { trace, isSpanContextValid, SpanKind } = this.api;
        const { series, time: startTime, parent, link } = about;
        const common = series === undefined ? undefined : this.#seriesOf(series);
        const attributes = common ? { ...common.attributes, ...about.attributes } : about.attributes;
        const { name, isSent } = common ?? about;
        let around = within;
        if (parent) {
            // A request that is sent belongs to what is current here; one that arrived, to what its sender says.
            const own = isSent ? trace.getSpanContext(within) : undefined;
            if (!own || !isSpanContextValid(own)) around = trace.setSpanContext(within, this.#remote(parent));
        }
        const options: api.SpanOptions = { kind: isSent ? SpanKind.CLIENT : SpanKind.SERVER, attributes, startTime };
        if (link) options.links = [{ context: this.#remote(link) }];
        return this.#tracer.startSpan(name!, options, around);
    }

    /** The series with that number, which the engine is asked for once. */
    #seriesOf(number: number): Series {
        return (this.#series[number] ??= JSON.parse(this.native.series(number)!) as Series);
    }

    #record(entry: Ended): void {
        const { key, series, time, begun, unsent } = entry;
        const span = begun ? this.#start(begun, this.api.ROOT_CONTEXT) : this.#open.get(key);
        if (!begun) this.#open.delete(key);
        if (unsent !== undefined) this.#endUnsent(unsent, time);
        if (span === undefined && !this.#seriesOf(series).isSent) this.#early.set(key, entry);
        else this.#end(entry, span);
    }

    /** Records calls that ended early and have not begun since: what was drained with them has begun by now. */
    #settle(): void {
        for (const [key, ended] of this.#early) {
            this.#early.delete(key);
            try {
                this.#end(ended);
            } catch (error) {
                this.#complain('what has ended', error);
            }
        }
    }

    #end({ series, time, seconds, isError, ended, failed, renamed }: Ended, span?: api.Span): void {
        if (span) {
            if (renamed !== undefined) span.updateName(renamed);
            if (ended) span.setAttributes(ended);
            if (isError) span.setStatus({ code: this.api.SpanStatusCode.ERROR });
            span.end(time);
        }
        const { histogram, attributes } = this.#seriesOf(series);
        this.#measure(histogram, seconds, failed ? { ...attributes, ...failed } : attributes, span);
    }

    #measure(histogram: string, seconds: number, attributes: api.Attributes, span?: api.Span): void {
        this.#histograms ??= this.#created();
        this.#histograms[histogram]!.record(seconds, attributes, span && this.api.trace.setSpan(this.api.ROOT_CONTEXT, span));
    }

    /** Ends the span of a request that a front did not pass on. */
    #endUnsent(key: number, time: Time): void {
        const span = this.#open.get(key);
        this.#open.delete(key);
        try {
            span?.end(time);
        } catch (error) {
            this.#complain('a request that is not passed on', error);
        }
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

    /** Tells the program that its sampler, processor or exporter threw: no call fails by that. */
    #complain(what: string, error: unknown): void {
        try {
            this.api.diag.error(`mcpbolt: telemetry of ${what} failed`, error);
        } catch {
            // The program's logger failed as well.
        }
    }
}

function nowhere(): undefined {}
