import { McpError, revive, type Failure } from './errors';
import type { NativeLink } from './native';
import { readJson, type Integers } from './numbers';
import { noteOpen } from './open';
import type { Progress } from './protocol';
import { observer, type AtFront, type Begun } from './telemetry';

/** The callbacks for the rows of `drain`, in the order of `Inbound` in `src/kinds.rs`. */
const CALLBACKS = [
    ...(['call', 'callWithProgress', 'cancelled', 'initialized', 'opened', 'answer', 'failure', 'progress'] as const),
    ...(['notification', 'line', 'closed', 'ended', 'traced', 'listening', 'asked', 'withdrawn', 'rootsChanged', 'left'] as const),
    ...(['head', 'piece', 'request', 'invoke', 'invokeAlone', 'frame', 'bad', 'room', 'position', 'session', 'done', 'partial', 'inputEnded'] as const)
];

/** The kinds of rows that a link handles itself. */
const enum Inbound {
    Call = 0,
    CallWithProgress = 1,
    Answer = 5,
    Failure = 6,
    Progress = 7,
    Closed = 10,
    Ended = 11,
    Listening = 13,
    Invoke = 21,
    InvokeAlone = 22,
    Partial = 29
}

/** @internal Kinds of the rows of `submit`, in the order of `Outbound` in `src/kinds.rs`. */
export const enum Outbound {
    Text,
    Structured,
    Object,
    Contents,
    ToolError,
    Error,
    Progress,
    Log,
    TaskMessage,
    Notice,
    Partial
}

type Callback = (text: string, number: number, target: number) => void;

/** @internal The callbacks of a link. The kinds in `src/kinds.rs` say what the text, the number and the target are. */
export type Receiver = { [Name in Exclude<(typeof CALLBACKS)[number], 'call' | 'invoke' | 'closed'>]?: Callback } & {
    /** `isAside` if long texts of the arguments come from `aside` of the native link; `span` is the one that begins now. */
    call?: (number: number, target: number, text: string, wantsProgress: boolean, isAside: boolean, span: Begun | AtFront | undefined) => void;
    /** With a delegate: a call of the tool with that number, its id and `_meta` as JSON. */
    invoke?: (number: number, tool: number, args: object | null, id: string, meta: string, isAlone: boolean) => void;
    closed?: (reason: McpError) => void;
};

/** @internal A pending request. */
export interface Waiting {
    resolve: (result: any) => void;
    reject: (error: unknown) => void;
    onProgress?: ((progress: Progress) => void) | undefined;
    /** Called with the stream's id once the stream is open. */
    onListening?: (id: number) => void;
    /** Resolves to raw JSON instead of a parsed value. */
    isRaw?: boolean;
    /** The context of OpenTelemetry in which the request was made. */
    context?: unknown;
}

/** Integers per row of `drain`, and in the head before the rows. */
const ROW_IN = 6;
const HEAD_IN = 3;
/** Numbers per row of `submit`. */
const ROW = 5;
/** Maximum number of rows per turn of the event loop, so that timers and I/O get their turn. */
const MAX_ROWS = 256;
/** Length of text above which rows are submitted at once instead of at the end of the tick. A longer text is a submit of its own. */
const MAX_TEXT = 256 << 10;
/** The answer to a call whose arguments JavaScript has no memory for. */
const UNREADABLE = JSON.stringify({ message: 'the arguments cannot be read' });
const INVALID_PARAMS = -32602;
/** The longest delay of a timer: it only keeps the process alive. */
const FOREVER = 2 ** 31 - 1;

/** Strong references to links that something waits for and that nothing else may refer to. */
const held = new Set<Link>();
/** Forgets collected links, whose timers would keep the process alive. */
const collected = new FinalizationRegistry<() => void>(forget => forget());
const alive = () => setInterval(nothing, FOREVER);

function nothing(): void {}

/**
 * @internal One connection to the engine: drains its events, a limited number per turn, and submits what handlers
 * return, once per tick. Keeps the process alive until the engine's thread has ended.
 *
 * The engine refers to a link weakly: a link that nothing refers to is collected, which closes the connection. See
 * `hold`.
 */
export class Link {
    readonly #table = new Int32Array(HEAD_IN + MAX_ROWS * ROW_IN);
    readonly #receiver: Receiver;
    /** How integers beyond 2^53 appear in values that are passed to the user. */
    integers: Integers = 'number';
    readonly #alive = alive();
    /** Forgets that the link is open. */
    readonly #forget: () => void;
    /** The server's link of a pair, which keeps the process alive as long as this one does. */
    twin: Link | undefined;
    /** The number of reasons to hold the link. */
    #reasons = 0;
    #isOver = false;
    #out = new Float64Array(64 * ROW);
    #rows = 0;
    #texts: string[] = [];
    #units = 0;
    #native: NativeLink | undefined;
    readonly #flush = () => this.#submit(false);
    /** Pending requests of this side, by number. */
    readonly #waiting = new Map<number, Waiting>();
    /** Called by the engine when its queue stops being empty. */
    readonly wake = Link.#waker(new WeakRef(this));

    /** `connect` gets the function that wakes this link; `what` says what it is. */
    constructor(receiver: Receiver, connect?: (wake: () => void) => NativeLink, what = 'connection of an SDK') {
        this.#receiver = receiver;
        const [timer, closed] = [this.#alive, noteOpen(what)];
        this.#forget = () => (clearInterval(timer), closed());
        collected.register(this, this.#forget);
        this.hold();
        if (connect === undefined) return;
        try {
            this.#native = connect(this.wake);
        } catch (error) {
            this.abandon();
            throw error;
        }
    }

    /** Marks the link as over: it keeps neither itself nor the process alive any more. */
    abandon(): void {
        this.#isOver = true;
        held.delete(this);
        this.#forget();
    }

    /**
     * Keeps the link from being collected, until `letGo` is called as often, or the link is over. A new link is held
     * once: a server's until its end, a client's until it is open.
     */
    hold(): void {
        if (this.#reasons++ === 0 && !this.#isOver) held.add(this);
    }

    letGo(): void {
        if (--this.#reasons === 0) held.delete(this);
    }

    static #waker(weak: WeakRef<Link>): () => void {
        return () => {
            const link = weak.deref();
            if (link) link.#drain();
        };
    }

    /** Sets whether the link keeps the process alive. */
    keepAlive(isKept: boolean): void {
        if (isKept) this.#alive.ref();
        else this.#alive.unref();
        this.twin?.keepAlive(isKept);
    }

    get native(): NativeLink {
        observer()?.checkFree();
        return this.#native!;
    }

    /** Sets the engine's side of a link that was created as one of a pair. */
    attach(native: NativeLink): void {
        this.#native = native;
    }

    #drain(): void {
        // A link that failed to connect may still be woken once.
        if (this.#native === undefined) return;
        const table = this.#table;
        const text = this.#taken(table);
        const end = HEAD_IN + table[0]! * ROW_IN;
        const isMore = table[1] !== 0;
        const json = table[2]! < 0 ? '[]' : text.slice(table[2]);
        const args = tryJson(json) as (object | null)[] | undefined;
        let [start, invoked, begin] = [0, 0, 1];
        for (let at = HEAD_IN; at < end; at += ROW_IN) {
            const [kind, number, target, stop] = [table[at]!, table[at + 1]!, table[at + 2]!, table[at + 3]!];
            try {
                if (kind === Inbound.Invoke || kind === Inbound.InvokeAlone) {
                    const [cut, over] = [table[at + 4]!, table[at + 5]!];
                    const own = args ? args[invoked++] : tryJson(json.slice(begin, over));
                    begin = over + 1;
                    if (own === undefined) this.push(Outbound.Error, number, UNREADABLE, INVALID_PARAMS);
                    else this.#receiver.invoke?.(number, target, own, text.slice(start, cut), text.slice(cut, stop), kind === Inbound.InvokeAlone);
                } else if (kind === Inbound.Call || kind === Inbound.CallWithProgress) {
                    const span = table[at + 5] === 0 ? undefined : (args![invoked++] as Begun | AtFront);
                    this.#receiver.call?.(number, target, text.slice(start, stop), kind === Inbound.CallWithProgress, table[at + 4] !== 0, span);
                } else this.#row(kind, number, target, text.slice(start, stop));
            } catch (error) {
                // A listener of the user threw: the other rows must still be handled.
                process.nextTick(() => {
                    throw error;
                });
            }
            start = stop;
        }
        this.#flush();
        if (isMore) setImmediate(this.wake);
    }

    /**
     * Drains the engine. No caller could catch an exception, so it becomes a warning; the next drain returns the rest.
     */
    #taken(table: Int32Array): string {
        try {
            const telemetry = observer();
            if (!telemetry) return this.native.drain(table);
            return telemetry.draining(() => this.native.drain(table), number => this.#waiting.get(number)?.context);
        } catch (error) {
            process.emitWarning(error as Error);
            table.set([0, 1, -1]);
            return '';
        }
    }

    #row(kind: Inbound, number: number, target: number, text: string): void {
        const receiver = this.#receiver;
        switch (kind) {
            case Inbound.Answer: {
                const waiting = this.#take(number);
                return waiting?.resolve(waiting.isRaw ? text : readJson(text, this.integers));
            }
            case Inbound.Failure: {
                const error = revive(JSON.parse(text) as Failure);
                // A pending request may be the first to learn that the connection has ended.
                if (error.code === 'ERR_MCP_CLOSED') receiver.closed?.(error.cause as McpError);
                return this.#take(number)?.reject(error);
            }
            case Inbound.Progress:
            case Inbound.Partial:
                return this.#waiting.get(number)?.onProgress?.(JSON.parse(text));
            case Inbound.Listening:
                return this.#waiting.get(number)?.onListening?.(Number(text));
            case Inbound.Closed:
                return receiver.closed?.(revive(JSON.parse(text) as Failure));
            case Inbound.Ended:
                this.abandon();
                return receiver.ended?.(text, 0, 0);
            default:
                return (receiver as Record<string, Callback | undefined>)[CALLBACKS[kind]!]?.(text, number, target);
        }
    }

    /** Adds a pending request; the link is held while there are any. */
    await(number: number, waiting: Waiting): void {
        if (this.#waiting.size === 0) this.hold();
        const telemetry = observer();
        if (telemetry) waiting.context = telemetry.api.context.active();
        this.#waiting.set(number, waiting);
    }

    #take(number: number): Waiting | undefined {
        const waiting = this.#waiting.get(number);
        if (this.#waiting.delete(number) && this.#waiting.size === 0) this.letGo();
        return waiting;
    }

    /** Cancels the pending request with that number, and tells the peer. */
    giveUp(number: number, reason?: string): void {
        this.#take(number);
        this.native.cancel(number, reason);
    }

    /** Adds a row to those that are submitted at the end of this tick. */
    push(kind: Outbound, number: number, text: string, a = 0, b = 0): void {
        if (text.length > MAX_TEXT) this.#flush();
        const at = this.#rows * ROW;
        if (at === this.#out.length) {
            const grown = new Float64Array(this.#out.length * 2);
            grown.set(this.#out);
            this.#out = grown;
        }
        const out = this.#out;
        out[at] = kind;
        out[at + 1] = number;
        out[at + 2] = text.length;
        out[at + 3] = a;
        out[at + 4] = b;
        this.#texts.push(text);
        this.#units += text.length;
        this.#rows++;
        if (this.#units > MAX_TEXT) this.#flush();
        // Runs after the microtasks of this tick, so that their results are included.
        else if (this.#rows === 1) process.nextTick(this.#flush);
    }

    /** Submits the rows so far, before an action that must not overtake them. */
    flush(): void {
        this.#submit(true);
    }

    #submit(atOnce: boolean): void {
        if (this.#rows === 0 && !atOnce) return;
        const texts = this.#texts;
        const text = texts.length === 1 ? texts[0]! : texts.join('\n');
        const rows = this.#out.subarray(0, this.#rows * ROW);
        this.#texts = [];
        this.#rows = 0;
        this.#units = 0;
        try {
            this.native.submit(text, rows, atOnce);
        } catch (error) {
            // No caller could catch it; the calls have been answered with it as far as possible.
            process.emitWarning(error as Error);
        }
    }
}

function tryJson(json: string): any {
    try {
        return JSON.parse(json);
    } catch {
        return undefined;
    }
}
