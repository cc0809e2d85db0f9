import { PassThrough, type Stream } from 'node:stream';
import { guarded, McpError } from '../errors';
import { Link } from '../link';
import { native, type NativeLink } from '../native';
import type { Id, Message, SdkTransport } from './shapes';

/** Messages on a pair of pipes, as the SDKs hand them about. */
abstract class Pipes implements SdkTransport {
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    #link: Link | undefined;
    #isClosing = false;
    #isOver = false;
    /** The other side's requests that are not answered. */
    readonly #pending = new Set<Id>();
    #ended: Promise<void> | undefined;
    readonly #waiting: (() => void)[] = [];

    /** @internal What it leads to. */
    protected abstract open(wake: () => void): NativeLink;
    /** @internal A line of a child's stderr. */
    protected line(_: string): void {}

    /** Begins to carry messages; called by whoever connects to it. */
    async start(): Promise<void> {
        if (this.#link) throw new McpError('ERR_MCP_MISUSE', 'it is started already: connect() does that');
        let end!: () => void;
        this.#ended = new Promise(resolve => (end = resolve));
        const receiver = {
            frame: (text: string) => this.#receive(JSON.parse(text)),
            bad: (why: string) => this.onerror?.(new SyntaxError(why)),
            line: (line: string) => this.line(line),
            room: () => this.#resume(),
            ended: () => {
                this.#isOver = true;
                this.#resume();
                end();
                this.onclose?.();
            }
        };
        this.#link = new Link(receiver, wake => guarded(() => this.open(wake)));
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

    /** Sends a message; waits only while too much is on its way. */
    async send(message: Message): Promise<void> {
        const { native } = this;
        if (native === undefined) throw new McpError('ERR_MCP_CLOSED', 'it is not connected');
        const settles = message.method === undefined && this.#pending.delete(message.id!);
        if (!native.say(JSON.stringify(message), settles)) await new Promise<void>(resolve => this.#waiting.push(resolve));
    }

    /** Ends it, whatever is not answered; resolves when all is over. */
    async close(): Promise<void> {
        this.#isClosing = true;
        for (const _ of this.#pending) this.native?.settle();
        this.#pending.clear();
        this.native?.stop();
        await this.#ended;
    }
}

/**
 * This process's stdin and stdout, for a server of either SDK: in place of the SDK's own class of that name. While it is
 * open, what else the process prints goes to stderr.
 */
export class StdioServerTransport extends Pipes {
    constructor(stdin?: unknown, stdout?: unknown) {
        super();
        // Not by default: Node begins with what is touched.
        const isOther = (stdin !== undefined && stdin !== process.stdin) || (stdout !== undefined && stdout !== process.stdout);
        if (isOther) throw new McpError('ERR_MCP_MISUSE', "other streams than the process's are for the SDK's own class");
    }

    /** @internal */
    protected override open(wake: () => void): NativeLink {
        return native.wireStdio(wake, false);
    }
}

/** How a server program is started. */
export interface StdioServerParameters {
    command: string;
    args?: string[];
    /** Besides what `getDefaultEnvironment()` of the SDK gives: HOME, PATH and the like. */
    env?: Record<string, string>;
    /** `inherit` by default; `pipe` gives its lines as the stream `stderr`. */
    stderr?: 'inherit' | 'ignore' | 'pipe' | 'overlapped';
    cwd?: string;
}

/**
 * A server program and its stdin and stdout, for a client of either SDK: in place of the SDK's own class of that name.
 * The child is in a process group of its own, which ends with it.
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

    /** What the child says on stderr, if that was asked for; there before it is started. */
    get stderr(): Stream | null {
        return this.#stderr;
    }

    /** Once it is started, until it has ended. */
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
        const variables = { ...inherited(), ...env };
        const child = {
            command,
            args,
            env: Object.entries(variables).flat(),
            isBare: true,
            stderr: this.#stderr ? 'lines' : (stderr ?? 'inherit'),
            closeMs: 2000,
            ...(cwd !== undefined && { cwd })
        };
        const link = native.wireChild(child, wake);
        this.#pid = link.pid();
        return link;
    }
}

const INHERITED =
    process.platform === 'win32'
        ? 'APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE PROGRAMDATA PROGRAMFILES SYSTEMDRIVE SYSTEMROOT TEMP USERNAME USERPROFILE WINDIR'
        : 'HOME LOGNAME PATH SHELL TERM USER';

/** As the SDKs have it: what is a shell's function is left out. */
function inherited(): Record<string, string> {
    const all = INHERITED.split(' ').map(name => [name, process.env[name]] as const);
    return Object.fromEntries(all.filter((pair): pair is [string, string] => pair[1] !== undefined && !pair[1].startsWith('()')));
}
