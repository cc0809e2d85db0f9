import { PassThrough, type Stream } from 'node:stream';
import { guarded, McpError } from '../errors';
import { Link } from '../link';
import { native, type NativeLink } from '../native';
import { GRACE } from '../serving';
import type { Id, Message, SdkTransport } from './shapes';

/** A transport of the SDKs over a pair of pipes. */
abstract class Pipes implements SdkTransport {
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    #link: Link | undefined;
    #isClosing = false;
    #isOver = false;
    /** The peer's unanswered requests. */
    readonly #pending = new Set<Id>();
    #ended: Promise<void> | undefined;
    readonly #waiting: (() => void)[] = [];

    /** @internal Opens the pipes. */
    protected abstract open(wake: () => void): NativeLink;
    /** @internal Called with each line of a child's stderr. */
    protected line(_: string): void {}
    /** @internal Called when stdin has ended; requests in flight may still be answered. */
    protected inputEnded(): void {}

    /** Starts to carry messages; called by `connect()`. */
    async start(): Promise<void> {
        if (this.#link) throw new McpError('ERR_MCP_MISUSE', 'already started; connect() calls start()');
        let end!: () => void;
        this.#ended = new Promise(resolve => (end = resolve));
        const receiver = {
            frame: (text: string) => this.#receive(JSON.parse(text)),
            bad: (why: string) => this.onerror?.(new SyntaxError(why)),
            line: (line: string) => this.line(line),
            room: () => this.#resume(),
            inputEnded: () => this.inputEnded(),
            ended: () => {
                this.#isOver = true;
                this.#resume();
                end();
                this.onclose?.();
            }
        };
        this.#link = new Link(receiver, wake => guarded(() => this.open(wake)));
    }

    /** @internal Sets whether it keeps the process alive. */
    keepAlive(isKept: boolean): void {
        this.#link?.keepAlive(isKept);
    }

    /** @internal */
    protected get native(): NativeLink | undefined {
        return this.#isOver ? undefined : this.#link?.native;
    }

    #receive(message: Message): void {
        const { id, method, params } = message;
        const isRequest = method !== undefined && id !== undefined;
        if (this.#isClosing) {
            if (isRequest) this.native?.settle();
            return;
        }
        if (isRequest) this.#pending.add(id);
        else if (method === 'notifications/cancelled' && this.#pending.delete(params?.requestId)) this.native?.settle();
        this.onmessage?.(message);
    }

    #resume(): void {
        for (const resolve of this.#waiting.splice(0)) resolve();
    }

    /** Sends a message; waits only while too much output is buffered. */
    async send(message: Message): Promise<void> {
        const { native } = this;
        if (native === undefined) throw new McpError('ERR_MCP_CLOSED', 'the transport is not connected');
        const settles = message.method === undefined && this.#pending.delete(message.id!);
        if (!native.say(JSON.stringify(message), settles)) await new Promise<void>(resolve => this.#waiting.push(resolve));
    }

    /** Closes the transport, even with unanswered requests; resolves when it has ended. */
    async close(): Promise<void> {
        this.#isClosing = true;
        for (const _ of this.#pending) this.native?.settle();
        this.#pending.clear();
        this.native?.stop();
        await this.#ended;
    }
}

/**
 * This process's stdin and stdout, for a server of either SDK. Replaces the SDK's own class of this name. While it is
 * open, everything else that the process prints to stdout goes to stderr.
 */
export class StdioServerTransport extends Pipes {
    constructor(stdin?: unknown, stdout?: unknown) {
        super();
        // No default parameters: Node initializes `process.stdin` and `process.stdout` on first access.
        const isOther = (stdin !== undefined && stdin !== process.stdin) || (stdout !== undefined && stdout !== process.stdout);
        if (isOther) throw new McpError('ERR_MCP_MISUSE', "only the process's own stdin and stdout are supported; use the SDK's class for other streams");
    }

    /** @internal */
    protected override open(wake: () => void): NativeLink {
        return native.wireStdio(wake, GRACE);
    }
}

/** How to start a server program. */
export interface StdioServerParameters {
    command: string;
    args?: string[];
    /** Added to the SDK's `getDefaultEnvironment()`: HOME, PATH and the like. */
    env?: Record<string, string>;
    /** `inherit` by default; with `pipe`, its lines are on the stream `stderr`. */
    stderr?: 'inherit' | 'ignore' | 'pipe' | 'overlapped';
    cwd?: string;
}

/**
 * The stdin and stdout of a server program, for a client of either SDK. Replaces the SDK's own class of this name. The
 * child runs in a process group of its own, which ends with it.
 */
export class StdioClientTransport extends Pipes {
    readonly #server: StdioServerParameters;
    readonly #stderr: PassThrough | null;
    #pid: number | null = null;

    constructor(server: StdioServerParameters) {
        super();
        this.#server = server;
        this.#stderr = server.stderr === 'pipe' || server.stderr === 'overlapped' ? new PassThrough() : null;
    }

    /** The child's stderr, if it was requested; available before the child is started. */
    get stderr(): Stream | null {
        return this.#stderr;
    }

    /** The child's process id, from its start until its end. */
    get pid(): number | null {
        return this.native ? this.#pid : null;
    }

    /** @internal */
    protected override line(line: string): void {
        this.#stderr?.write(`${line}\n`);
    }

    /** @internal */
    protected override open(wake: () => void): NativeLink {
        const { command, args = [], env, stderr, cwd } = this.#server;
        const child = JSON.stringify({
            command,
            args,
            env: { ...inherited(), ...env },
            isBare: true,
            stderr: this.#stderr ? 'lines' : (stderr ?? 'inherit'),
            closeTimeout: 2000,
            cwd
        });
        const link = native.wireChild(child, wake);
        this.#pid = link.pid();
        return link;
    }
}

const INHERITED =
    process.platform === 'win32'
        ? 'APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE PROGRAMDATA PROGRAMFILES SYSTEMDRIVE SYSTEMROOT TEMP USERNAME USERPROFILE WINDIR'
        : 'HOME LOGNAME PATH SHELL TERM USER';

/** As in the SDKs; shell functions are left out. */
function inherited(): Record<string, string> {
    const all = INHERITED.split(' ').map(name => [name, process.env[name]] as const);
    return Object.fromEntries(all.filter((pair): pair is [string, string] => pair[1] !== undefined && !pair[1].startsWith('()')));
}
