import type { NativeMount } from './native';

/** @internal Takes one answer. */
export interface Taker {
    head(status: number, headers: string[]): void;
    piece(text: string, isLast: boolean): void;
}

/** @internal Who has names of its own for sessions: headers are names and values in turn. */
export interface Names {
    in(headers: string[]): void;
    out(headers: string[]): void;
}

/** @internal The HTTP requests that are under way in an endpoint. */
export class Mounted {
    readonly #native: NativeMount;
    readonly #takers = new Map<number, Taker>();
    readonly #busy: (isBusy: boolean) => void;

    /** `busy` is told when the first request begins, and when the last has ended. */
    constructor(native: NativeMount, busy: (isBusy: boolean) => void) {
        this.#native = native;
        this.#busy = busy;
    }

    /** Begins a request; nothing when the endpoint has ended. */
    begin(
        method: string,
        uri: string,
        headers: string[],
        take: (exchange: Exchange) => Taker,
        names?: Names
    ): Exchange | undefined {
        names?.in(headers);
        const number = this.#native.begin(method, uri, headers);
        if (number === null) return undefined;
        const exchange = new Exchange(this.#native, number, () => this.#end(number));
        if (this.#takers.size === 0) this.#busy(true);
        const taker = take(exchange);
        this.#takers.set(number, names ? renaming(taker, names) : taker);
        return exchange;
    }

    head(number: number, status: number, text: string): void {
        this.#takers.get(number)?.head(status, JSON.parse(text));
    }

    piece(number: number, text: string, isLast: boolean): void {
        const taker = this.#takers.get(number);
        if (isLast) this.#end(number);
        taker?.piece(text, isLast);
    }

    #end(number: number): void {
        if (!this.#takers.delete(number)) return;
        this.#native.end(number);
        if (this.#takers.size === 0) this.#busy(false);
    }
}

function renaming(taker: Taker, names: Names): Taker {
    return {
        head: (status, headers) => (names.out(headers), taker.head(status, headers)),
        piece: (text, isLast) => taker.piece(text, isLast)
    };
}

/** @internal One request and its answer. */
export class Exchange {
    readonly #native: NativeMount;
    readonly #number: number;
    /** Nobody wants the answer any more, or all of it is there. */
    readonly end: () => void;

    constructor(native: NativeMount, number: number, end: () => void) {
        this.#native = native;
        this.#number = number;
        this.end = end;
    }

    /** A piece of the request's body. */
    body(piece: Uint8Array): void {
        this.#native.body(this.#number, piece);
    }

    /** Its body has come to its end. */
    bodyEnd(): void {
        this.#native.bodyEnd(this.#number);
    }

    /** A further piece of the answer is welcome: one always is. */
    more(): void {
        this.#native.more(this.#number);
    }
}
