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
export type Begun = readonly [
    key: number,
    series: number | readonly [name: string, isSent: boolean],
    seconds: number,
    nanoseconds: number,
    attributes: api.Attributes,
    parent?: Place | null,
    link?: Place | null
];

/** @internal The key of a span that began at the front that stands for the server. */
export type AtFront = readonly [key: number];

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
/** Numbers of a request that ended well: its key, its series, its time, and the seconds that it took. */
const ROW = 5;

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

/**
 * Values by number, few at a time. Tables that a `Map` of them has outgrown would keep values alive, until all memory is collected, that are
 * no longer in it; here the map has places only.
 */
class Held<T> {
    readonly #places = new Map<number, number>();
    readonly #values: (T | undefined)[] = [];
    readonly #free: number[] = [];

    set(key: number, value: T): void {
        const place = this.#free.pop() ?? this.#values.length;
        this.#values[place] = value;
        this.#places.set(key, place);
    }

    get(key: number): T | undefined {
        const place = this.#places.get(key);
        return place === undefined ? undefined : this.#values[place];
    }

    take(key: number): T | undefined {
        const place = this.#places.get(key);
        if (place === undefined) return undefined;
        const value = this.#values[place];
        this.#places.delete(key);
        this.#values[place] = undefined;
        this.#free.push(place);
        return value;
    }
}

/** @internal The engine's observer, and what it tells OpenTelemetry. */
export class Telemetry {
    readonly native: NativeTelemetry = new native.Telemetry(() => this.take(), (wire, number) => this.#sent(wire, number));
    /** Whether the engine waits for the span of a request to begin. */
    #isBeginning = false;
    readonly #tracer: api.Tracer;
    #histograms: Readonly<Record<string, api.Histogram>> | undefined;
    /** Spans that have begun, by key, each in the context in which it is current. */
    readonly #open = new Held<api.Context>();
    /** Calls that ended after they were drained, before they began here. */
    readonly #early = new Map<number, Ended>();
    /** Requests that ended well: see `native.take`. */
    readonly #rows = new Float64Array(1 + 256 * ROW);
    readonly #series: Series[] = [];
    #contextOf: (number: number) => unknown = nowhere;

    constructor(readonly api: typeof import('@opentelemetry/api')) {
        this.#tracer = api.trace.getTracer(SCOPE, native.Telemetry.version());
        // Before the listeners that shut an SDK down.
        const take = () => this.take();
        process.prependListener('beforeExit', take).prependListener('exit', take);
    }

    /** Begins the span of a call. Returns what runs the call's handler within that: nothing else, since all that begins there keeps it. */
    begun(about: Begun | AtFront): (run: () => unknown) => unknown {
        const { trace, context, ROOT_CONTEXT } = this.api;
        if (about.length === 1) {
            const within = this.#open.get(about[0]) ?? ROOT_CONTEXT;
            return run => context.with(within, run);
        }
        const within = trace.setSpan(ROOT_CONTEXT, this.#start(about, ROOT_CONTEXT));
        const key = about[0];
        const ended = this.#early.get(key);
        if (ended === undefined) this.#open.set(key, within);
        else {
            this.#early.delete(key);
            this.#end(ended, within);
        }
        return run => context.with(within, run);
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
        const rows = this.#rows;
        const wire = this.native.take(rows);
        const end = 1 + rows[0]!;
        for (let at = 1; at < end; at += ROW)
            try {
                this.#record({ key: rows[at]!, series: rows[at + 1]!, time: [rows[at + 2]!, rows[at + 3]!], seconds: rows[at + 4]! });
            } catch (error) {
                this.#complain('what has ended', error);
            }
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
            if (place !== undefined) this.#open.set(about[0], this.api.trace.setSpan(this.api.ROOT_CONTEXT, span));
            return place ?? null;
        } finally {
            this.#isBeginning = false;
        }
    }

    /** Begins the spans of a request that a front passes on, for which the request waits. */
    #pass({ passes: [about, further] }: Passing): void {
        const { trace, ROOT_CONTEXT } = this.api;
        const own = this.#start(about, ROOT_CONTEXT);
        const within = trace.setSpan(ROOT_CONTEXT, own);
        this.#open.set(about[0], within);
        const sent = this.#start(further, within);
        if (this.native.passed(about[0], this.#placeOf(own), this.#placeOf(sent))) this.#open.set(further[0], trace.setSpan(ROOT_CONTEXT, sent));
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
        // By index, which costs each call less than taking the array apart.
        const series = about[1];
        const own = about[4];
        const parent = about[5];
        const link = about[6];
        const common = typeof series === 'number' ? this.#seriesOf(series) : { name: series[0], isSent: series[1], attributes: undefined };
        const { name, isSent } = common;
        const attributes = common.attributes ? { ...common.attributes, ...own } : own;
        const startTime: Time = [about[2], about[3]];
        let around = within;
        if (parent) {
            // A request that is sent belongs to what is current here; one that arrived, to what its sender says.
            const here = isSent ? trace.getSpanContext(within) : undefined;
            if (!here || !isSpanContextValid(here)) around = trace.setSpanContext(within, this.#remote(parent));
        }
        const options: api.SpanOptions = { kind: isSent ? SpanKind.CLIENT : SpanKind.SERVER, attributes, startTime };
        if (link) options.links = [{ context: this.#remote(link) }];
        return this.#tracer.startSpan(name, options, around);
    }

    /** The series with that number, which the engine is asked for once. */
    #seriesOf(number: number): Series {
        return (this.#series[number] ??= JSON.parse(this.native.series(number)!) as Series);
    }

    #record(entry: Ended): void {
        const { trace, ROOT_CONTEXT } = this.api;
        const { key, series, time, begun, unsent } = entry;
        const within = begun ? trace.setSpan(ROOT_CONTEXT, this.#start(begun, ROOT_CONTEXT)) : this.#open.take(key);
        if (unsent !== undefined) this.#endUnsent(unsent, time);
        if (within === undefined && !this.#seriesOf(series).isSent) this.#early.set(key, entry);
        else this.#end(entry, within);
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

    #end({ series, time, seconds, isError, ended, failed, renamed }: Ended, within?: api.Context): void {
        if (within) {
            const span = this.api.trace.getSpan(within)!;
            if (renamed !== undefined) span.updateName(renamed);
            if (ended) span.setAttributes(ended);
            if (isError) span.setStatus({ code: this.api.SpanStatusCode.ERROR });
            span.end(time);
        }
        const { histogram, attributes } = this.#seriesOf(series);
        this.#measure(histogram, seconds, failed ? { ...attributes, ...failed } : attributes, within);
    }

    #measure(histogram: string, seconds: number, attributes: api.Attributes, within?: api.Context): void {
        this.#histograms ??= this.#created();
        this.#histograms[histogram]!.record(seconds, attributes, within);
    }

    /** Ends the span of a request that a front did not pass on. */
    #endUnsent(key: number, time: Time): void {
        const within = this.#open.take(key);
        try {
            if (within) this.api.trace.getSpan(within)!.end(time);
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
