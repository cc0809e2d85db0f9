/** This process's stdin and stdout, which the engine takes over and gives back. */
import { isMainThread } from 'node:worker_threads';
import { stopReading } from '../sdk/private';
import { GRACE } from '../serving';
import * as say from './say';

/** Resolves once the engine has given back what a closed server had. */
let givenBack: Promise<void> = Promise.resolve();
/** Whether stdin was given back: then it is paused. */
let isGivenBack = false;

/** @internal Why the engine cannot serve stdin and stdout; `undefined` if it can. */
export function whyNotStdio(): string | undefined {
    if (!isMainThread) return 'it runs in a worker thread';
    const { stdin } = process;
    if (stdin.readableEnded || stdin.destroyed) return 'stdin has ended';
    const isUnheard = stdin.listenerCount('data') + stdin.listenerCount('readable') === 0;
    if (stdin.readableFlowing === null || (isGivenBack && !stdin.readableFlowing && isUnheard)) return undefined;
    return 'the program has begun to read stdin';
}

/** The methods through which messages pass when the SDK serves. */
const PASSED = { stdin: ['emit', 'push', 'read'], stdout: ['write'] } as const;

/** The methods of stdin and stdout that the program has replaced, and that see no messages of the engine. */
function bypassed(): string[] {
    return Object.entries(PASSED).flatMap(([stream, names]) =>
        names.filter(name => Object.hasOwn(process[stream as keyof typeof PASSED], name)).map(name => `process.${stream}.${name}`)
    );
}

/** @internal Waits for the engine's end after a server was closed. */
export function untilGivenBack(): Promise<void> {
    return givenBack;
}

/** @internal The engine on stdin and stdout. */
export interface Engine {
    /** Ends at once; with `waits`, returns when everything is written. */
    finish(waits: boolean): void;
    /** Sets whether it keeps the process alive. */
    keepAlive(isKept: boolean): void;
}

/** @internal Stdin and stdout from when the engine has them until it has ended. */
export class Held {
    /** Resolves once the engine has ended. */
    readonly closed: Promise<void>;
    readonly #engine: Engine;
    readonly #generation: 1 | 2;
    #timer: NodeJS.Timeout | undefined;
    #isClosing = false;
    #isEnded = false;

    constructor(engine: Engine, ended: Promise<unknown>, generation: 1 | 2) {
        this.#engine = engine;
        this.#generation = generation;
        say.bypassed(bypassed());
        const readOn = stopReading(process.stdin);
        // The SDK writes answers at once, also those given just before the process exits.
        const exit = () => engine.finish(true);
        process.on('exit', exit);
        this.closed = ended.then(() => {
            process.off('exit', exit);
            clearTimeout(this.#timer);
            if (this.#isClosing) giveBack(readOn);
            else this.#end();
        });
    }

    /** Whether the program is told of the end: the first generation does not tell of the end of stdin. */
    get isTold(): boolean {
        return this.#isClosing || this.#generation === 2;
    }

    /**
     * Handles the end of stdin. Under the first generation, calls in flight are answered for as long as the program
     * lives by itself.
     */
    inputEnded(): void {
        if (this.#isEnded) return;
        this.#end();
        if (this.#generation === 1) this.#engine.keepAlive(false);
        // Where the SDK closes the connection.
        else this.#timer = setTimeout(() => this.#engine.finish(false), GRACE);
    }

    /** Ends stdin for those who listen to it. */
    #end(): void {
        if (this.#isEnded) return;
        this.#isEnded = true;
        process.stdin.push(null);
        process.stdin.resume();
    }

    /** Ends the engine without waiting for handlers, and gives stdin and stdout back to the program. */
    close(): Promise<void> {
        this.#isClosing = true;
        this.#engine.finish(false);
        givenBack = this.closed;
        return this.closed;
    }
}

/** As the SDKs' transport leaves stdin when it is closed. */
function giveBack(readOn: () => void): void {
    const { stdin } = process;
    isGivenBack = true;
    if (stdin.listenerCount('data') === 0) stdin.pause();
    readOn();
}
