import { rootsOf, type AnswersOf } from './answering';
import type { Profile } from './definitions';
import type { ClientEvents } from './events';
import type { NativeTelemetry } from './native';
import { settingsJson, type Integers } from './numbers';
import type { Revision, Trace } from './protocol';
import { telemetry } from './telemetry';

export interface ClientOptionsOf<Client> extends AnswersOf<Client> {
    /** The client's name, as sent to the server; `mcpbolt` by default. */
    name?: string;
    /** The client's version, as sent to the server; `0` by default. */
    version?: string;
    /**
     * How the connection opens: `probe` tries stateless requests (2026-07-28) first and falls back to the handshake;
     * `handshake` and `stateless` assume one of them. `actions` uses the action dialect instead: only `action` and
     * related methods work, and none of MCP.
     */
    opening?: 'probe' | 'handshake' | 'stateless' | 'actions';
    /** The variant of the protocol to speak up to 2025-11-25; `official` by default. See `ServerOptions.profile`. */
    profile?: Profile;
    /** The only revision to speak; by default any that both sides support. */
    revision?: Revision;
    /** How long a request waits without news, in ms, unless its options say otherwise; 60 s by default. */
    timeout?: number;
    /**
     * How integers beyond 2^53 appear in results, and in requests and notifications of the server: see `Integers`;
     * `number` by default. Every `bigint` is sent as an exact integer.
     */
    integers?: Integers;
    /** Lets servers turn calls into tasks, from 2026-07-28 on: `callTool` waits for their results; see `startTool`. */
    tasks?: boolean;
    /**
     * Rejects results that do not conform to the protocol revision (`ERR_MCP_BAD_ANSWER` names the member); by default
     * they are returned as received.
     */
    checkResults?: boolean;
    /** Extensions that the client declares, from 2026-07-28 on: settings by name. See also `capabilities`. */
    extensions?: Readonly<Record<string, object>>;
    /** Called with each message. */
    trace?: Trace;
    /**
     * Makes spans and metrics of all requests and of the session with the program's OpenTelemetry, as for a `Server`. The span that is
     * current at a call is the parent, and the server is told of it in `_meta`.
     */
    telemetry?: boolean;
    /** Listeners to add before any event is emitted; `client.on(…)` adds more later. */
    on?: { readonly [Name in keyof ClientEvents]?: (...args: ClientEvents[Name]) => void };
}

export interface SpawnOptionsOf<Client> extends ClientOptionsOf<Client> {
    /** The working directory of the program; by default the one of this process. */
    cwd?: string;
    /** Environment variables in addition to the few harmless ones that are inherited. */
    env?: Record<string, string>;
    /** The program's stderr: shared with this process, discarded, or passed on line by line. */
    stderr?: 'inherit' | 'ignore' | ((line: string) => void);
    /**
     * How long the program may take to exit after its stdin is closed, and again after SIGTERM, in ms; 2000 by default.
     */
    closeTimeout?: number;
}

/** The exit status of a server's process. */
export interface Exit {
    code: number | null;
    signal: number | null;
}

/** @internal Who sees the messages: whether `trace` does, and the telemetry. */
export function watchOf({ trace, telemetry: isOn }: ClientOptionsOf<any>): [trace: boolean, telemetry: NativeTelemetry | undefined] {
    return [trace !== undefined, isOn ? telemetry().native : undefined];
}

/** @internal The engine's part of the options, as JSON. */
export function clientSettings(options: ClientOptionsOf<any>): string {
    const { name = 'mcpbolt', version = '0', opening, profile, revision, roots, tasks, checkResults, extensions } = options;
    return settingsJson({
        ...{ name, version, opening, profile, revision, tasks, checkResults, extensions },
        roots: roots && rootsOf(roots),
        sampling: options.onSampling !== undefined,
        samplingTools: options.samplingTools,
        forms: options.onElicitation !== undefined,
        pages: options.onElicitationUrl !== undefined
    });
}

/** @internal The program to start, as JSON. */
export function childSettings(command: string, args: readonly string[], { cwd, env = {}, stderr = 'inherit', closeTimeout }: SpawnOptionsOf<any>): string {
    return settingsJson({ command, args, cwd, env, stderr: typeof stderr === 'function' ? 'lines' : stderr, closeTimeout });
}
