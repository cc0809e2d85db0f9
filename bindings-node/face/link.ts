import { McpError, revive, type Failure } from './errors';
import type { NativeLink } from './native';
import { readJson, type Integers } from './numbers';
import type { Progress } from './protocol';

/** Rows of `drain`: see `src/drain.rs`. */
const enum Inbound {
    Call,
    CallWithProgress,
    Cancelled,
    Initialized,
    Opened,
    Answer,
    Failure,
    Progress,
    Notification,
    Line,
    Closed,
    Ended,
    Traced,
    Listening,
    Asked,
    Withdrawn,
    RootsChanged,
    Left,
    Head,
    Piece,
    Request,
    Invoke,
    InvokeAlone,
    Frame,
    Bad,
    Room,
    Position,
    Session,
    Done
}

/** @internal Rows of `submit`: see `src/submit.rs`. */
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

/** @internal What is told to whoever holds a link; `text` is JSON but for cancellations and lines. */
export interface Receiver {
    call?(number: number, target: number, text: string, wantsProgress: boolean): void;
    /** Another library's: a whole request, or a call of the tool of that number, its id and `_meta` as JSON. */
    request?(number: number, text: string): void;
    invoke?(number: number, tool: number, args: object | null, id: string, meta: string, isAlone: boolean): void;
    cancelled?(number: number, reason: string): void;
    initialized?(text: string): void;
    rootsChanged?(text: string): void;
    left?(text: string): void;
    opened?(text: string): void;
    asked?(number: number, topic: number, text: string): void;
    withdrawn?(number: number): void;
    notification?(text: string): void;
    line?(text: string): void;
    closed?(reason: McpError): void;
    /** The answer to an HTTP request, and a piece of its body. */
    head?(number: number, status: number, text: string): void;
    piece?(number: number, text: string, isLast: boolean): void;
    /** On a wire: a message, and of which one it is; what is none; room for more. */
    frame?(text: string, of: number): void;
    bad?(why: string): void;
    room?(): void;
    /** Of messages over HTTP. */
    position?(of: number, position: string): void;
    session?(name: string): void;
    done?(of: number, why: string): void;
    ended?(text: string): void;
    traced?(isOut: boolean, text: string): void;
}

/** @internal Who waits for an answer. */
export interface Waiting {
    resolve: (result: any) => void;
    reject: (error: unknown) => void;
    onProgress?: ((progress: Progress) => void) | undefined;
    /** A stream is open, under that id. */
    onListening?: (id: number) => void;
    /** The result is wanted as the JSON that it came in. */
    isRaw?: boolean;
}

/** Numbers in a row of `drain`, and before the rows. */
const ROW_IN = 6;
const HEAD_IN = 3;
/** And of `submit`. */
const ROW = 5;
/** Rows taken in one turn of the loop, so that timers and I/O have theirs. */
const MAX_ROWS = 256;
/** Text that is submitted at once instead of at the end of the tick. */
const MAX_TEXT = 256 << 10;
/** How a call is answered whose arguments JavaScript has no room for. */
const UNREADABLE = JSON.stringify({ message: 'the arguments cannot be read' });
const INVALID_PARAMS = -32602;
/** The longest delay of a timer: it only keeps the process alive. */
const FOREVER = 2 ** 31 - 1;

/**
 * @internal One connection: takes what the engine has, a turn's at once, and hands over what handlers gave back, once
 * per tick. Keeps the process alive until the engine's thread has ended.
 */
export class Link {
    readonly #table = new Int32Array(HEAD_IN + MAX_ROWS * ROW_IN);
    readonly #receiver: Receiver;
    /** What becomes of integers beyond 2^53 in what is handed to the user. */
    integers: Integers = 'number';
    readonly #alive = setInterval(() => {}, FOREVER);
    #out = new Float64Array(64 * ROW);
    #rows = 0;
    #texts: string[] = [];
    #units = 0;
    #native: NativeLink | undefined;
    readonly #flush = () => this.#submit(false);
    /** Who waits for the answers to this side's requests, by their numbers. */
    readonly waiting = new Map<number, Waiting>();

    /** `connect` is given what wakes this link. */
    constructor(receiver: Receiver, connect?: (wake: () => void) => NativeLink) {
        this.#receiver = receiver;
        if (connect === undefined) return;
        try {
            this.#native = connect(this.wake);
        } catch (error) {
            this.abandon();
            throw error;
        }
    }

    /** It was never connected: nothing is to be waited for. */
    abandon(): void {
        clearInterval(this.#alive);
    }

    /** Called by the engine when something waits and nothing did. */
    readonly wake = () => this.#drain();

    /** Whether the process is kept alive. */
    keepAlive(isKept: boolean): void {
        if (isKept) this.#alive.ref();
        else this.#alive.unref();
    }

    get native(): NativeLink {
        return this.#native!;
    }

    /** For links that are made two at a time. */
    attach(native: NativeLink): void {
        this.#native = native;
    }

    #drain(): void {
        // What could not be connected may still say farewell.
        if (this.#native === undefined) return;
        const table = this.#table;
        const text = this.native.drain(table);
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
                } else this.#row(kind, number, target, text.slice(start, stop));
            } catch (error) {
                // Thrown by a listener of the user's: it takes no other row along.
                process.nextTick(() => {
                    throw error;
                });
            }
            start = stop;
        }
        this.#flush();
        if (isMore) setImmediate(this.wake);
    }

    #row(kind: Inbound, number: number, target: number, text: string): void {
        const receiver = this.#receiver;
        switch (kind) {
            case Inbound.Call:
            case Inbound.CallWithProgress:
                return receiver.call?.(number, target, text, kind === Inbound.CallWithProgress);
            case Inbound.Request:
                return receiver.request?.(number, text);
            case Inbound.Answer: {
                const waiting = this.#take(number);
                return waiting?.resolve(waiting.isRaw ? text : readJson(text, this.integers));
            }
            case Inbound.Failure: {
                const error = revive(JSON.parse(text) as Failure);
                // Who waits for an answer may learn of the end first.
                if (error.code === 'ERR_MCP_CLOSED') receiver.closed?.(error.cause as McpError);
                return this.#take(number)?.reject(error);
            }
            case Inbound.Progress:
                return this.waiting.get(number)?.onProgress?.(JSON.parse(text));
            case Inbound.Listening:
                return this.waiting.get(number)?.onListening?.(Number(text));
            case Inbound.Cancelled:
                return receiver.cancelled?.(number, text);
            case Inbound.Initialized:
                return receiver.initialized?.(text);
            case Inbound.RootsChanged:
                return receiver.rootsChanged?.(text);
            case Inbound.Left:
                return receiver.left?.(text);
            case Inbound.Opened:
                return receiver.opened?.(text);
            case Inbound.Asked:
                return receiver.asked?.(number, target, text);
            case Inbound.Withdrawn:
                return receiver.withdrawn?.(number);
            case Inbound.Notification:
                return receiver.notification?.(text);
            case Inbound.Line:
                return receiver.line?.(text);
            case Inbound.Closed:
                return receiver.closed?.(revive(JSON.parse(text) as Failure));
            case Inbound.Traced:
                return receiver.traced?.(target === 1, text);
            case Inbound.Head:
                return receiver.head?.(number, target, text);
            case Inbound.Piece:
                return receiver.piece?.(number, text, target === 1);
            case Inbound.Frame:
                return receiver.frame?.(text, number);
            case Inbound.Bad:
                return receiver.bad?.(text);
            case Inbound.Room:
                return receiver.room?.();
            case Inbound.Position:
                return receiver.position?.(number, text);
            case Inbound.Session:
                return receiver.session?.(text);
            case Inbound.Done:
                return receiver.done?.(number, text);
            case Inbound.Ended:
                clearInterval(this.#alive);
                return receiver.ended?.(text);
        }
    }

    #take(number: number): Waiting | undefined {
        const waiting = this.waiting.get(number);
        this.waiting.delete(number);
        return waiting;
    }

    /** Gives up what is waited for under a number, and tells the peer. */
    giveUp(number: number, reason?: string): void {
        this.waiting.delete(number);
        this.native.cancel(number, reason);
    }

    /** Adds a row to what is handed over at the end of this tick. */
    push(kind: Outbound, number: number, text: string, a = 0, b = 0): void {
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
        // After the microtasks of this tick: what they give back goes along.
        if (this.#rows++ === 0) process.nextTick(this.#flush);
        else if (this.#units > MAX_TEXT) this.#flush();
    }

    /** Hands over what there is, before something else is done that must not overtake it. */
    flush(): void {
        this.#submit(true);
    }

    #submit(atOnce: boolean): void {
        if (this.#rows === 0 && !atOnce) return;
        const texts = this.#texts;
        const text = texts.length === 1 ? texts[0]! : texts.join('\n');
        this.native.submit(text, this.#out.subarray(0, this.#rows * ROW), atOnce);
        this.#texts = [];
        this.#rows = 0;
        this.#units = 0;
    }
}

function tryJson(json: string): any {
    try {
        return JSON.parse(json);
    } catch {
        return undefined;
    }
}
